# SPDX-License-Identifier: Apache-2.0
"""Pictures of rounds, searches and costs; matplotlib is loaded when one is drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
INSIDE = 5  # a legend of more lines stands beside the picture
# One colour a policy in every picture; told apart without colour by their marks
_STYLES = {
    'fifo': ('#8c8c8c', 'v', '-'),
    'edf': ('#c98a00', 's', '-'),
    'slack_gate': ('#2a7fb8', '^', '-'),
    'xinfer': ('#b5332e', 'o', '-'),
    'foresight': ('#1b7a3d', 'D', '-'),
    'foresight_shed': ('#6a3d9a', 'P', '--'),
    'serial': ('#4d4d4d', 'x', '-'),
    'dynamic_batch': ('#8c564b', 'h', '-'),
    'robion': ('#e377c2', '*', '-'),
    'round_robin': ('#17becf', '<', '-'),
    'armory_edf': ('#bcbd22', '>', '-'),
    'lookahead': ('#ff7f0e', 'p', '-'),
}
_OTHER = ('#444444', '.', '-')


def style(policy: str) -> tuple[str, str, str]:
    """
    Return colour, mark and line of a scheduling policy.

    :param policy: its name; a variant, ``NAME:...``, looks like its policy with a broken line
    """
    name, _, variant = policy.partition(':')
    colour, mark, line = _STYLES.get(name, _OTHER)
    return colour, mark, '--' if variant else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """
    One line of a picture.

    :param style: name of the scheduling policy that gives colour and mark
    :param points: values of every round by place on the x axis; the line joins their means
    :param published: published values by place on the x axis
    :param dashed: whether the line is
    :param open_marks: whether the marks are drawn empty
    """

    name: str
    style: str
    points: Mapping[int, Sequence[float]]
    published: Mapping[int, float] = field(default_factory=dict)
    dashed: bool = False
    open_marks: bool = False


def line_plot(
    path: Path,
    *,
    title: str,
    y_label: str,
    curves: Sequence[Curve],
    x_label: str = 'robots',
    level: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """
    Draw lines over the number of robots, with the range of the rounds and published crosses.

    :param level: a value to mark with a line
    """
    figure, axes = new_figure(title, x_label, y_label)
    for curve in curves:
        colour, mark, line = style(curve.style)
        places = sorted(curve.points)
        values = [np.asarray(curve.points[place]) for place in places]
        axes.plot(
            places,
            [float(rounds.mean()) for rounds in values],
            color=colour,
            marker=mark,
            markersize=4.5,
            markerfacecolor='white' if curve.open_marks else colour,
            linewidth=1.6,
            linestyle='--' if curve.dashed else line,
            label=curve.name,
        )
        axes.fill_between(
            places,
            [float(rounds.min()) for rounds in values],
            [float(rounds.max()) for rounds in values],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        if curve.published:
            axes.plot(
                list(curve.published),
                list(curve.published.values()),
                'x',
                color=colour,
                markersize=7,
                markeredgewidth=1.8,
            )
    if any(curve.published for curve in curves):
        axes.plot([], [], 'x', color='black', label='published')
    if level is not None:
        axes.axhline(level, color='black', linewidth=0.8, linestyle=':')
    if log_x:
        axes.set_xscale('log')
    if log_y:
        axes.set_yscale('log')
    _plain_ticks(axes, log_x, log_y)
    if log_x:
        axes.set_xticks(sorted({place for curve in curves for place in curve.points}))
    _save(figure, axes, path)


def _plain_ticks(axes: 'Axes', log_x: bool, log_y: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    plain = FuncFormatter(lambda value, _: f'{value:g}')
    for is_log, axis in ((log_x, axes.xaxis), (log_y, axes.yaxis)):
        if is_log:
            axis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(plain)
    if not log_x:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """
    The latencies of one policy and budget class.

    :param quantiles_ms: evenly from the least to the largest [ms]
    """

    name: str
    style: str
    budget_ms: float
    quantiles_ms: Sequence[float]


def latency_plot(path: Path, *, title: str, latencies: Sequence[Latencies]) -> None:
    """Draw the cumulative distribution of latencies, one field a budget class."""
    from matplotlib.figure import Figure

    budgets = sorted({each.budget_ms for each in latencies})[:6]
    figure = Figure(figsize=(3.6 * max(len(budgets), 2), 3.9), dpi=DPI)
    all_axes = figure.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
    for budget, axes in zip(budgets, all_axes, strict=True):
        for each in latencies:
            if each.budget_ms == budget:
                shares = np.linspace(0.0, 100.0, len(each.quantiles_ms))
                colour, _, line = style(each.style)
                axes.plot(
                    each.quantiles_ms,
                    shares,
                    color=colour,
                    linewidth=1.6,
                    linestyle=line,
                    label=each.name,
                )
        axes.axvline(budget, color='black', linewidth=0.8, linestyle=':')
        axes.set_title(f'budget {budget:g} ms', fontsize=10)
        axes.set_xlabel('latency [ms]')
        axes.set_xlim(0.0, 2.0 * budget)
        axes.set_ylim(0.0, 101.0)
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel('responses [%]')
    all_axes[-1].legend(fontsize=8, loc='lower right')
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path)


def bar_plot(
    path: Path,
    *,
    title: str,
    y_label: str,
    groups: Sequence[str],
    bars: Mapping[str, Sequence[tuple[float, float]]],
) -> None:
    """
    Draw groups of bars.

    :param bars: of each kind and group the published value, a line, and the simulated one
    """
    figure, axes = new_figure(title, '', y_label, width=9.5)
    width = 0.8 / len(bars)
    for place, (name, pairs) in enumerate(bars.items()):
        at = np.arange(len(groups)) + (place + 0.5) * width - 0.4
        axes.bar(at, [pair[1] for pair in pairs], width * 0.92, label=name, alpha=0.75)
        published = [pair[0] for pair in pairs]
        axes.hlines(published, at - width / 2, at + width / 2, color='black', linewidth=1.4)
    axes.plot([], [], '-', color='black', linewidth=1.4, label='published')
    axes.axhline(0.0, color='black', linewidth=0.6)
    axes.set_xticks(np.arange(len(groups)), groups, fontsize=8, rotation=15)
    _save(figure, axes, path)


def range_plot(
    path: Path, *, title: str, y_label: str, bars: Mapping[str, Sequence[float]]
) -> None:
    """
    Draw a bar of the median of each, with the range of its values.

    :param bars: values by name
    """
    figure, axes = new_figure(title, '', y_label)
    for place, values in enumerate(bars.values()):
        middle = float(np.median(values))
        reach = [[middle - min(values)], [max(values) - middle]]
        axes.bar(place, middle, 0.62, color='#1b7a3d', alpha=0.75)
        axes.errorbar(place, middle, yerr=reach, color='black', linewidth=1.2, capsize=4)
        axes.text(place + 0.06, middle, f' {middle:.1f}', va='bottom', fontsize=9)
    axes.set_xticks(range(len(bars)), list(bars))
    axes.set_ylim(bottom=0.0)
    figure.tight_layout()
    figure.savefig(path)


def new_figure(
    title: str, x_label: str, y_label: str, *, width: float = 7.8, height: float = 4.2
) -> 'tuple[Figure, Axes]':
    """Return a figure of one field, with its names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI)
    axes = figure.subplots()
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.25)
    return figure, axes


def _save(figure: 'Figure', axes: 'Axes', path: Path) -> None:
    if len(axes.get_legend_handles_labels()[1]) > INSIDE:
        axes.legend(fontsize=8, loc='center left', bbox_to_anchor=(1.01, 0.5))
    else:
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
