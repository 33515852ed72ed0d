# SPDX-License-Identifier: Apache-2.0
"""The comparison of execution modes as a table and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.fleet.modes import ModeRecord
from xinfer_ros.fleet.report_table import ReportTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 110
STYLES = {
    'rtc': ('#1b7a3d', 'D'),
    'async': ('#b5332e', 'o'),
    'sync': ('#2a7fb8', 's'),
    'ensemble': ('#c98a00', '^'),
}
NOTE = (
    'Seam: where a new chunk takes over; jump: the largest step there of a joint that does not '
    'switch. Over-frozen: rows of a chunk that were promised and not needed. Late: chunks that '
    'came after their promised rows had run out. Both are of rtc alone, since the others promise '
    'nothing. Tracking: root mean square of command less recording.'
)


def modes_table(title: str, records: Sequence[ModeRecord], recorded_step: float) -> ReportTable:
    """
    Return the table of a comparison.

    :param recorded_step: largest joint step of the recordings themselves [rad]
    """
    return ReportTable(
        title=title,
        columns=(
            'mode', 'delay ms', 'seam jump P95 mrad', 'max mrad', 'any step max mrad',
            'starved %', 'over-frozen rows', 'late %', 'tracking mrad', 'time s', 'over recording',
        ),
        rows=tuple(_row(each) for each in records),
        note=f'{NOTE} Largest step of the recordings: {1e3 * recorded_step:.0f} mrad.',
    )  # fmt: skip


def _row(record: ModeRecord) -> tuple[str, ...]:
    ties = record.mode == 'rtc'
    return (
        record.mode,
        str(record.delay_ms),
        f'{1e3 * record.jump_p95:.0f}',
        f'{1e3 * record.jump_max:.0f}',
        f'{1e3 * record.step_max:.0f}',
        f'{100 * record.starved:.1f}',
        f'{record.overfrozen:.1f}' if ties else '-',
        f'{100 * record.violated:.1f}' if ties else '-',
        f'{1e3 * record.tracking_rms:.0f}',
        f'{record.completion_s:.1f}',
        f'{100 * (record.slower - 1):+.0f} %',
    )


def modes_plot(
    path: Path, title: str, records: Sequence[ModeRecord], recorded_step: float
) -> None:
    """Draw jump, starvation, over-freezing and tracking error over the delay."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 6.4), dpi=DPI)
    axes = figure.subplots(2, 2, sharex=True)
    _curves(axes[0, 0], 'largest jump at a seam [mrad]', records, 'jump_max', 1e3)
    axes[0, 0].axhline(
        1e3 * recorded_step, color='black', linestyle=':', label='largest step recorded'
    )
    _curves(axes[0, 1], 'ticks without a row [%]', records, 'starved', 100.0)
    tied = [each for each in records if each.mode == 'rtc']
    _curves(axes[1, 0], 'rows promised in vain, per chunk', tied, 'overfrozen', 1.0)
    _curves(axes[1, 1], 'tracking error, RMS [mrad]', records, 'tracking_rms', 1e3)
    for below in axes[1]:
        below.set_xlabel('mean response delay [ms]')
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.suptitle(title, fontsize=11)
    figure.legend(handles, labels, loc='lower center', ncols=len(labels), fontsize=9)
    figure.tight_layout(rect=(0.0, 0.05, 1.0, 1.0))
    figure.savefig(path)


def _curves(
    axes: 'Axes', y_label: str, records: Sequence[ModeRecord], field: str, scale: float
) -> None:
    for mode in dict.fromkeys(each.mode for each in records):
        colour, mark = STYLES[mode]
        found = sorted((e.delay_ms, scale * getattr(e, field)) for e in records if e.mode == mode)
        delays, values = zip(*found, strict=True)
        axes.plot(delays, values, color=colour, marker=mark, markersize=4.5, label=mode)
    axes.set_ylabel(y_label, fontsize=9)
    axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.25)
