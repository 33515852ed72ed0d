# SPDX-License-Identifier: Apache-2.0
"""What recorded episodes hold and which budgets they ask for, as tables and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.core.budget_sequence import BudgetSequence
from xinfer_ros.episodes.budgets import BudgetRule, Interval
from xinfer_ros.episodes.grippers import GripperSwitch
from xinfer_ros.episodes.summary import EpisodeSummary, Timing
from xinfer_ros.fleet.plots import DPI
from xinfer_ros.fleet.report_table import ReportTable

_COLOURS = ('#b5332e', '#2a7fb8', '#c98a00', '#6a3d9a')
_ROW_INCHES = 0.32


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpisode:
    """
    An episode with its budgets.

    :param sequence: its budgets
    :param switches: of its grippers
    :param intervals: in which the budget is tight
    """

    sequence: BudgetSequence
    switches: tuple[GripperSwitch, ...]
    intervals: tuple[Interval, ...]


def episodes_table(summaries: Sequence[EpisodeSummary]) -> ReportTable:
    """Return a line an episode."""
    return ReportTable(
        title='Episodes',
        columns=(
            'episode', 'format', 'length [s]', 'joints', 'states [Hz]', 'commands [Hz]',
            'gripper switches', 'contact [%]', 'task',
        ),
        rows=tuple(
            (
                found.name,
                found.format,
                f'{found.duration_s:.2f}',
                str(len(found.joints)),
                _rate(found.states),
                _rate(found.commands),
                str(len(found.switches)),
                '-' if found.contact_share is None else f'{100 * found.contact_share:.0f}',
                found.task or '-',
            )
            for found in summaries
        ),
        left=('format', 'task'),
    )  # fmt: skip


def cameras_table(summaries: Sequence[EpisodeSummary]) -> ReportTable:
    """Return a line a camera."""
    return ReportTable(
        title='Cameras',
        columns=(
            'episode', 'camera', 'size', 'stored', 'frames', 'rate [Hz]', 'missing',
            'longest gap [ms]',
        ),
        rows=tuple(
            (
                found.name,
                camera.name,
                f'{camera.height}x{camera.width}',
                camera.stored,
                str(camera.timing.count),
                f'{camera.timing.rate_hz:.2f}',
                str(camera.timing.dropped),
                f'{1000 * camera.timing.longest_gap_s:.0f}',
            )
            for found in summaries
            for camera in found.cameras
        ),
        note="missing: frames that the gaps between the camera's own stamps leave room for",
        left=('camera', 'stored'),
    )  # fmt: skip


def switches_line(found: EpisodeSummary) -> str:
    """Return the switches of an episode in words."""
    words = [
        f'{switch.time_ns / 1e9:.2f} s {switch.joint} {"opens" if switch.opens else "closes"}'
        for switch in found.switches
    ]
    return f'{found.name}: {", ".join(words) or "no gripper switches"}'


def budgets_table(planned: Sequence[PlannedEpisode], rule: BudgetRule) -> ReportTable:
    """Return a line an episode, and one for all of them."""
    rows = [_budget_row(one, rule) for one in planned]
    shares = [one.sequence.coverage for one in planned]
    counts = [len(one.sequence.budgets_ms) for one in planned]
    if len(planned) > 1:
        mean = sum(shares) / len(shares)
        spread = f'{100 * min(shares):.1f} to {100 * max(shares):.1f}'
        total = f'{sum(counts)} responses'
        rows.append(('all', '', '', f'{100 * mean:.1f}', total, f'coverage {spread} %'))
    return ReportTable(
        title='Budget sequences',
        columns=(
            'episode', 'length [s]', 'switches', 'covered [%]',
            f'{rule.tight_ms:g} / {rule.wide_ms:g} ms', 'responses in turn',
        ),
        rows=tuple(rows),
        note=(
            f'tight from {rule.before_s:g} s before to {rule.after_s:g} s after a switch of a '
            f'gripper, overlaps merged; a response every {rule.period_ms:g} ms'
        ),
        left=('responses in turn',),
    )  # fmt: skip


def budgets_plot(path: Path, planned: Sequence[PlannedEpisode], rule: BudgetRule) -> None:
    """
    Draw when the budget of each episode is tight, and the switches that make it so.

    :param path: of the picture
    :param planned: the episodes, from the top
    :param rule: how switches became budgets
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(9.0, 1.6 + _ROW_INCHES * len(planned)), dpi=DPI)
    axes = figure.subplots()
    joints = list(dict.fromkeys(s.joint for one in planned for s in one.switches))
    for row, one in enumerate(planned):
        length_s = one.sequence.duration_s
        axes.broken_barh([(0.0, length_s)], (row - 0.36, 0.72), color='#e8e8e8')
        bars = [(i.start_ns / 1e9, (i.end_ns - i.start_ns) / 1e9) for i in one.intervals]
        axes.broken_barh(bars, (row - 0.36, 0.72), color='#8fc7a1')
        for switch in one.switches:
            colour = _COLOURS[joints.index(switch.joint) % len(_COLOURS)]
            mark = '^' if switch.opens else 'v'
            axes.plot(switch.time_ns / 1e9, row, mark, color=colour, ms=5)
        share = f' {100 * one.sequence.coverage:.0f} %'
        axes.text(length_s, row, share, va='center', fontsize=8)
    axes.set_yticks(range(len(planned)), [one.sequence.name for one in planned], fontsize=8)
    axes.set_ylim(len(planned) - 0.4, -0.6)
    axes.set_xlabel('time [s]')
    handles = [
        Patch(color='#8fc7a1', label=f'{rule.tight_ms:g} ms'),
        Patch(color='#e8e8e8', label=f'{rule.wide_ms:g} ms'),
        *(
            Line2D([], [], ls='', marker='^', color=_COLOURS[i % len(_COLOURS)], label=joint)
            for i, joint in enumerate(joints)
        ),
    ]
    axes.legend(
        handles=handles, loc='lower center', bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=8
    )
    figure.tight_layout()
    figure.savefig(path)


def _budget_row(one: PlannedEpisode, rule: BudgetRule) -> tuple[str, ...]:
    budgets_ms = one.sequence.budgets_ms
    tight = sum(budget == rule.tight_ms for budget in budgets_ms)
    turns = ' '.join(f'{phase.responses}x{phase.budget_ms:g}' for phase in one.sequence.phases)
    return (
        one.sequence.name,
        f'{one.sequence.duration_s:.2f}',
        str(len(one.switches)),
        f'{100 * one.sequence.coverage:.1f}',
        f'{tight} / {len(budgets_ms) - tight}',
        turns,
    )


def _rate(timing: Timing | None) -> str:
    return '-' if timing is None else f'{timing.rate_hz:.2f}'
