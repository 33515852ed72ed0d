# SPDX-License-Identifier: Apache-2.0
"""A comparison of scheduling policies as tables and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.fleet.compare import CompareRecord
from xinfer_ros.fleet.plots import DPI, style
from xinfer_ros.fleet.report_table import ReportTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOTE = (
    'ERC: the largest fleet of which every round meets the criterion; the other numbers are means '
    'over the rounds of one fleet. starved: share of time in which a robot has nothing to execute.'
)


def workloads_of(records: Sequence[CompareRecord]) -> list[str]:
    """Return the workloads in their order."""
    return list(dict.fromkeys(record.workload for record in records))


def policies_of(records: Sequence[CompareRecord]) -> list[str]:
    """Return the policies in their order."""
    return list(dict.fromkeys(record.policy for record in records))


def workload_table(records: Sequence[CompareRecord]) -> ReportTable:
    """Return one workload, the policy of the largest capacity first."""
    first = records[0]
    in_rows = first.steps_per_device_s is not None
    columns = ('policy', 'ERC', 'on time %', 'worst %', 'goodput 1/s', 'starved %', '±')
    more = ('fast %', 'slow %', 'steps a GPU s', 'mirror error') if in_rows else ()
    return ReportTable(
        title=f'{first.workload}: {first.robots} robots, device {first.calibration}, '
        f'criterion {first.criterion}',
        columns=(*columns, *more, 'fairness'),
        rows=tuple(
            _cells(record, in_rows)
            for record in sorted(records, key=lambda r: (-r.erc, r.starvation, -r.attainment))
        ),
        note=_NOTE,
    )


def _cells(record: CompareRecord, in_rows: bool) -> tuple[str, ...]:
    cells = [
        record.policy,
        capacity(record),
        f'{100 * record.attainment:.1f}',
        f'{100 * record.least_attainment:.1f}',
        f'{record.goodput:.1f}',
        f'{100 * record.starvation:.1f}',
        f'{50 * record.starvation_spread:.1f}',
    ]
    if in_rows:
        cells += [
            _optional(record.fast_starvation, 100.0, 1),
            _optional(record.slow_starvation, 100.0, 1),
            _optional(record.steps_per_device_s, 1.0, 0),
            _optional(record.mirror_error_steps, 1.0, 3),
        ]
    return (*cells, f'{record.fairness:.3f}')


def _optional(value: float | None, factor: float, digits: int) -> str:
    return '–' if value is None else f'{factor * value:.{digits}f}'


def capacity(record: CompareRecord) -> str:
    """Return the capacity, with a plus if no fleet up to the limit failed."""
    return f'{record.erc}' if record.first_failing else f'{record.erc}+'


def capacity_table(records: Sequence[CompareRecord]) -> ReportTable:
    """Return the capacity of every policy on every workload."""
    found = {(r.policy, r.workload): r for r in records}
    workloads = workloads_of(records)
    policies = sorted(policies_of(records), key=lambda p: -sum(found[p, w].erc for w in workloads))
    return ReportTable(
        title='Capacity (ERC) of every scheduling policy',
        columns=('policy', *workloads),
        rows=tuple((p, *(capacity(found[p, w]) for w in workloads)) for p in policies),
        note='+: no fleet up to the limit of the search failed.',
    )


def compare_plot(path: Path, records: Sequence[CompareRecord]) -> None:
    """Draw capacities as bars, and beside them who starves in robot time."""
    from matplotlib.figure import Figure

    tiers = [r for r in records if r.slow_starvation is not None]
    workloads = list(dict.fromkeys(r.workload for r in tiers))
    figure = Figure(figsize=(9.5 + 4.2 * len(workloads), 4.8), dpi=DPI)
    widths = [2.2, *(1.0 for _ in workloads)]
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    _draw_capacities(axes[0], records)
    for place, workload in enumerate(workloads):
        _draw_tiers(axes[place + 1], [r for r in tiers if r.workload == workload])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='lower center', ncols=min(len(labels), 7), fontsize=8)
    figure.tight_layout(rect=(0.0, 0.05 + 0.035 * ((len(labels) - 1) // 7 + 1), 1.0, 1.0))
    figure.savefig(path)


def _draw_capacities(axes: 'Axes', records: Sequence[CompareRecord]) -> None:
    workloads, policies = workloads_of(records), policies_of(records)
    width = 0.84 / len(policies)
    for place, policy in enumerate(policies):
        colour, _, line = style(policy)
        erc = [r.erc for w in workloads for r in records if (r.policy, r.workload) == (policy, w)]
        at = [w + (place + 0.5) * width - 0.42 for w in range(len(workloads))]
        hatch = '' if line == '-' else '////'
        axes.bar(at, erc, width * 0.92, color=colour, label=policy, hatch=hatch, edgecolor='white')
    axes.set_xticks(range(len(workloads)), workloads, fontsize=9)
    axes.set_ylabel('ERC [robots]')
    axes.set_title('Capacity', fontsize=11)
    axes.grid(axis='y', alpha=0.25)


def _draw_tiers(axes: 'Axes', records: Sequence[CompareRecord]) -> None:
    for record in records:
        colour, mark, _ = style(record.policy)
        fast, slow = record.fast_starvation or 0.0, record.slow_starvation or 0.0
        axes.plot(100 * fast, 100 * slow, mark, color=colour, markersize=8)
    axes.set_xlim(left=-2.0)
    axes.set_ylim(bottom=-2.0)
    axes.set_xlabel('fast tier starved [%]')
    axes.set_ylabel('slow tier starved [%]')
    axes.set_title(f'{records[0].workload}, {records[0].robots} robots', fontsize=11)
    axes.grid(alpha=0.25)
