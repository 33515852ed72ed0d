# SPDX-License-Identifier: Apache-2.0
"""The pictures of a benchmark; matplotlib is loaded when one is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.bench_record import BenchRecord
from xinfer_ros.fleet.bench_table import middle, rounds_of
from xinfer_ros.fleet.physical_projection import PhysicalProjection
from xinfer_ros.fleet.plots import DPI, new_figure
from xinfer_ros.fleet.stage_second import Errors, StageSecond

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS = 'ours'
_SYSTEMS = {OURS: ('#1b7a3d', 'o'), 'openpi': ('#b5332e', 's'), 'floor': ('#6b6b6b', '^')}
_OTHER = ('#2a7fb8', 'D')
_QUANTILES = (('p50_ms', 'P50', '-'), ('p95_ms', 'P95', '--'), ('p99_ms', 'P99', ':'))
_STAGES = {Stage.VIT: '#2a7fb8', Stage.PREFILL: '#c98a00', Stage.ACTION: '#b5332e'}
_LABELS = {Stage.VIT: 'ViT', Stage.PREFILL: 'Prefill', Stage.ACTION: 'Action'}
MIN_LABEL_MS = 12.0  # bars shorter than this hold no text


def latency_figure(records: Sequence[BenchRecord]) -> 'Figure':
    """Draw response times over the size of the fleet, three quantiles a system."""
    figure, axes = new_figure('Response time, observation sent to answer received', 'robots', 'ms')
    sizes = _sizes(records)
    if len(sizes) == 1:  # a line needs two places
        _latency_bars(axes, records)
        _finish(figure, axes)
        return figure
    for system, fleets in _by_system(records).items():
        colour, mark = _SYSTEMS.get(system, _OTHER)
        for name, label, line in _QUANTILES:
            axes.plot(
                list(fleets),
                [middle([getattr(r, name) for r in rounds]) for rounds in fleets.values()],
                color=colour,
                marker=mark,
                markersize=4.5,
                linestyle=line,
                linewidth=1.6,
                label=f'{system} {label}',
                zorder=_height(system),
            )
    _log_ms(axes)
    _finish(figure, axes, sizes)
    return figure


def _latency_bars(axes: 'Axes', records: Sequence[BenchRecord]) -> None:
    """Draw the quantiles of one fleet, a group a quantile and a bar a system."""
    systems = _by_system(records)
    width = 0.8 / len(systems)
    for number, (system, fleets) in enumerate(systems.items()):
        ((robots, rounds),) = fleets.items()
        values = [middle([getattr(r, name) for r in rounds]) for name, _, _ in _QUANTILES]
        places = np.arange(len(values)) + (number + 0.5) * width - 0.4
        colour, _ = _SYSTEMS.get(system, _OTHER)
        bars = axes.bar(places, values, 0.92 * width, color=colour, label=system)
        axes.bar_label(bars, [_short(value) for value in values], fontsize=8, padding=2)
    axes.set_xticks(range(len(_QUANTILES)), [label for _, label, _ in _QUANTILES])
    axes.set_xlabel(f'{robots} robots')
    axes.margins(y=0.12)
    axes.set_axisbelow(True)


def on_time_figure(records: Sequence[BenchRecord]) -> 'Figure':
    """Draw attainment and goodput over the size of the fleet."""
    figure, (shares, rates) = _pair(records)
    for system, fleets in _by_system(records).items():
        for axes, name, factor in ((shares, 'attainment', 100.0), (rates, 'goodput_hz', 1.0)):
            values = [
                factor * middle([getattr(r, name) for r in each]) for each in fleets.values()
            ]
            _line(axes, system, list(fleets), values)
    shares.set_title('Answers within their budget [%]', fontsize=10)
    shares.set_ylim(0.0, 108.0)
    rates.set_title('Goodput: such answers per second', fontsize=10)
    rates.set_ylim(bottom=0.0)
    _finish_pair(figure, (shares, rates))
    return figure


def stage_figure(second: StageSecond, title: str) -> 'Figure':
    """Draw what the lanes did, a bar a unit, with the numbers of its robots."""
    busy = second.busy
    # a stage that the model does not have is passed in no time
    lanes = sorted({(bar.stage, bar.row) for bar in second.bars if busy[bar.stage]})
    places = {lane: place for place, lane in enumerate(lanes)}
    figure, axes = new_figure(title, 'ms', '', height=1.6 + 0.42 * max(len(lanes), 2))
    for bar in (bar for bar in second.bars if busy[bar.stage]):
        place, width = places[bar.stage, bar.row], bar.to_ms - bar.from_ms
        axes.barh(
            place, width, left=bar.from_ms, height=0.78,
            color=_STAGES[bar.stage], edgecolor='white',
            # an edge would hide a narrow bar, and so would rounding it to pixels
            linewidth=0.5 if width >= MIN_LABEL_MS else 0.0, snap=False,
        )  # fmt: skip
        if width >= MIN_LABEL_MS:
            text = ','.join(map(str, bar.robots))
            middle_ms = bar.from_ms + width / 2
            axes.text(middle_ms, place, text, ha='center', va='center', fontsize=6, color='white')
    axes.set_yticks(
        range(len(lanes)),
        [f'{_LABELS[s]}, {100 * busy[s]:.0f} % busy' if not row else '' for s, row in lanes],
    )
    axes.invert_yaxis()
    axes.set_xlim(0.0, second.length_ms)
    axes.grid(axis='y', visible=False)
    figure.tight_layout()
    return figure


def error_figure(errors: Errors) -> 'Figure':
    """Draw the errors of predicted remaining times, as shares of the predictions of a stage."""
    figure, axes = new_figure(
        'Error of the predicted end of a unit', 'predicted less true [ms]', 'predictions [%]'
    )
    ends = [np.quantile(found, (0.01, 0.99)) for found in errors.values()]
    low, high = min(0.0, *(e[0] for e in ends)), max(0.0, *(e[1] for e in ends))
    edges = np.linspace(low - 0.5, high + 0.5, 61)
    for stage, found in errors.items():
        inside = np.clip(found, edges[0], edges[-1])
        counts = np.histogram(inside, edges)[0]
        axes.stairs(
            100.0 * counts / len(found), edges, color=_STAGES[stage], linewidth=1.6,
            label=f'{_LABELS[stage]}: MAE {np.abs(found).mean():.2f} ms, {len(found)} predictions',
        )  # fmt: skip
    axes.axvline(0.0, color='black', linewidth=0.8, linestyle=':')
    _finish(figure, axes)
    return figure


def projection_figure(records: Sequence[BenchRecord], projection: PhysicalProjection) -> 'Figure':
    """Draw the parcels per hour that each fleet would handle with its median response time."""
    figure, (single, whole) = _pair(records)
    for system, fleets in _by_system(records).items():
        medians = {n: middle([r.p50_ms for r in rounds]) for n, rounds in fleets.items()}
        known = {n: ms for n, ms in medians.items() if not np.isnan(ms)}
        for axes, robots in ((single, 1), (whole, None)):
            values = [projection.parcels_per_hour(robots or n, ms) for n, ms in known.items()]
            _line(axes, system, list(known), values)
    sizes = _sizes(records)
    for axes, robots in ((single, 1), (whole, None)):
        values = [projection.parcels_per_hour(robots or n, 0.0) for n in sizes]
        if len(sizes) > 1:
            axes.plot(sizes, values, color='black', linewidth=0.8, linestyle=':', label='no delay')
        else:
            axes.axhline(values[0], color='black', linewidth=0.8, linestyle=':', label='no delay')
        axes.set_ylim(bottom=0.0)
    single.set_title('Projected parcels per hour and robot', fontsize=10)
    whole.set_title('Projected parcels per hour, whole fleet', fontsize=10)
    _finish_pair(figure, (single, whole))
    return figure


def _pair(records: Sequence[BenchRecord]) -> 'tuple[Figure, tuple[Axes, Axes]]':
    """Return a figure of two fields over the size of the fleet."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 4.0), dpi=DPI)
    left, right = figure.subplots(1, 2)
    sizes = _sizes(records)
    for axes in (left, right):
        axes.set_xlabel('robots' if len(sizes) > 1 else f'{sizes[0]} robots')
        if len(sizes) > 1:
            axes.set_xticks(sizes)
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
    return figure, (left, right)


def _line(axes: 'Axes', system: str, places: Sequence[int], values: Sequence[float]) -> None:
    colour, mark = _SYSTEMS.get(system, _OTHER)
    if len(places) == 1:  # the only fleet: a bar, whose place on the axis is the system
        bars = axes.bar(system, values, 0.6, color=colour)
        axes.bar_label(bars, [_short(value) for value in values], fontsize=8, padding=2)
        axes.margins(y=0.12)
        return
    axes.plot(
        places,
        values,
        color=colour,
        marker=mark,
        # equal lines lie on each other: what is beneath is seen around what is above
        markersize=4.5 if system == OURS else 8.0,
        linewidth=1.6 if system == OURS else 3.2,
        alpha=1.0 if system == OURS else 0.6,
        label=system,
        zorder=_height(system),
    )


def _height(system: str) -> float:
    return 3.0 if system == OURS else 2.0


def _short(value: float) -> str:
    return f'{value:.1f}' if value < 100 else f'{value:,.0f}'


def _finish_pair(figure: 'Figure', pair: 'tuple[Axes, Axes]') -> None:
    for axes in pair:
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, loc='lower left')
    figure.tight_layout()


def _by_system(records: Sequence[BenchRecord]) -> dict[str, dict[int, list[BenchRecord]]]:
    found: dict[str, dict[int, list[BenchRecord]]] = {}
    for (system, robots), rounds in rounds_of(records).items():
        found.setdefault(system, {})[robots] = rounds
    return {system: dict(sorted(fleets.items())) for system, fleets in found.items()}


def _sizes(records: Sequence[BenchRecord]) -> list[int]:
    return sorted({record.robots for record in records})


def _log_ms(axes: 'Axes') -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale('log')
    axes.yaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))


def _finish(figure: 'Figure', axes: 'Axes', ticks: Sequence[int] = ()) -> None:
    if ticks:
        axes.set_xticks(list(ticks))
    axes.legend(fontsize=8, loc='center left', bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    figure.tight_layout()
