# SPDX-License-Identifier: Apache-2.0
"""What delay costs a simulated robot, as a table and as a picture."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.fleet.physical import MEASURED, PhysicalRecord
from xinfer_ros.fleet.physical_intervals import Estimate
from xinfer_ros.fleet.report_table import ReportTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 110
COLOURS = ('#2a7fb8', '#b5332e', '#1b7a3d', '#c98a00', '#6a3d9a', '#8c8c8c', '#444444', '#d95f9c')
MARKS = ('o', 'D', 's', '^', 'v', 'P', 'X', '*')
NOTE = (
    '95 %: intervals, of Wilson for success, bootstrapped over the episodes for the rest. Time: '
    'of the episodes that succeed. Per hour: transfers in an hour of trying, failures included; '
    'change: against the least delay, same seeds. Grips: of an episode, one if none is missed. '
    'Starved: ticks without a row. Frozen in vain: rows promised and not needed, per chunk. '
    'Late: chunks that came after their promised rows.'
)


def physical_table(title: str, records: Sequence[PhysicalRecord]) -> ReportTable:
    """Return the table of an experiment."""
    return ReportTable(
        title=title,
        columns=(
            'task', 'delay ms', 'success %', '95 %', 'time s', '95 %', 'per hour', 'change %',
            '95 %', 'grips', 'starved %', 'frozen in vain', 'late %',
        ),
        rows=tuple(_row(each) for each in records),
        note=NOTE,
    )  # fmt: skip


def _row(record: PhysicalRecord) -> tuple[str, ...]:
    return (
        _name(record),
        str(record.delay_ms),
        *_cells(record.estimate('success'), 0, 100.0),
        *_cells(record.estimate('seconds'), 1),
        f'{record.per_hour:.0f}',
        *_cells(record.estimate('change'), 0, 100.0),
        f'{record.grips:.1f}',
        f'{100 * record.starved:.1f}',
        f'{record.overfrozen:.1f}',
        f'{100 * record.violated:.0f}',
    )


def _cells(estimate: Estimate, digits: int, scale: float = 1.0) -> tuple[str, str]:
    """Return a figure and its interval; one that there is none of is a dash."""
    if not isfinite(estimate.value):
        return '-', '-'
    value, low, high = (
        f'{scale * each:.{digits}f}' for each in (estimate.value, estimate.low, estimate.high)
    )
    return value, f'{low} to {high}'


def physical_plot(path: Path, title: str, records: Sequence[PhysicalRecord]) -> None:
    """Draw success, completion time and completed transfers over the delay, with intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.4), dpi=DPI)
    axes = figure.subplots(1, 3)
    _curves(axes[0], 'success [%]', records, 'success', 100.0)
    _curves(axes[1], 'time of a transfer [s]', records, 'seconds', 1.0)
    _curves(axes[2], 'transfers per hour, change [%]', records, 'change', 100.0)
    axes[0].set_ylim(0.0, 103.0)
    axes[1].set_ylim(bottom=0.0)
    axes[2].axhline(0.0, color='black', linewidth=0.8)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.suptitle(title, fontsize=11)
    figure.legend(handles, labels, loc='lower center', ncols=min(len(labels), 6), fontsize=9)
    figure.tight_layout(rect=(0.0, 0.07, 1.0, 1.0))
    figure.savefig(path)


def _curves(
    axes: 'Axes',
    y_label: str,
    records: Sequence[PhysicalRecord],
    figure: str,
    scale: float,
) -> None:
    names = list(dict.fromkeys(_name(each) for each in records))
    for place, name in enumerate(names):
        found = sorted((e for e in records if _name(e) == name), key=lambda e: e.delay_ms)
        delays = [each.delay_ms for each in found]
        figures = [each.estimate(figure) for each in found]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        values, lows, highs = (
            [scale * getattr(each, part) for each in figures] for part in ('value', 'low', 'high')
        )
        axes.plot(delays, values, color=colour, marker=mark, markersize=4.5, label=name)
        axes.fill_between(delays, lows, highs, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel('response delay [ms]')
    axes.set_ylabel(y_label, fontsize=9)
    axes.grid(alpha=0.25)


def _name(record: PhysicalRecord) -> str:
    """Return the name of a curve: the task, and what is not as usual."""
    unusual = [] if record.mode == 'rtc' else [record.mode]
    unusual += [] if record.commitment == MEASURED else [f'd = {record.commitment}']
    return ', '.join([record.task, *unusual])
