# SPDX-License-Identifier: Apache-2.0
"""A plan as a table, and what the simulators make of it."""

from collections.abc import Sequence

from xinfer_ros.fleet.plan import PlanRecord
from xinfer_ros.fleet.plan_check import CheckRecord
from xinfer_ros.fleet.report_table import ReportTable


def plan_table(title: str, records: Sequence[PlanRecord], note: str) -> ReportTable:
    """Return a plan, a row a deadline and execution horizon."""
    return ReportTable(
        title=title,
        columns=(
            'deadline', 'asks every', 'VLA tier', 'brain tier', 'fleet', 'binds', 'by how much',
        ),
        left=('binds', 'by how much'),
        rows=tuple(_cells(record) for record in records),
        note=note,
    )  # fmt: skip


def _cells(record: PlanRecord) -> tuple[str, ...]:
    return (
        record.budgets,
        f'{record.execution_steps} × {record.spacing_ms:g} = {record.period_ms:g} ms',
        str(record.vla_robots),
        '–' if record.brain_robots is None else str(record.brain_robots),
        str(record.robots),
        record.binds,
        _by_how_much(record),
    )


def _by_how_much(record: PlanRecord) -> str:
    if not record.vla_robots:
        return 'not even one request is on time'
    if record.brain_robots is None:
        return 'there is no brain'
    if not record.more:
        return 'neither has room'
    other = 'brain' if record.binds == 'VLA' else 'VLA'
    return f'the {other} tier holds {record.more} more{_share(record)}'


def _share(record: PlanRecord) -> str:
    if not record.robots:
        return ''
    share = record.more / record.robots
    return f' (+{100 * share:.0f} %)' if share < 10.0 else f' (× {1 + share:,.0f})'


def check_table(records: Sequence[CheckRecord]) -> ReportTable:
    """Return planned beside simulated figures."""
    return ReportTable(
        title='Planned and simulated',
        columns=('what', 'at', 'planned', 'simulated', 'difference'),
        left=('at',),
        rows=tuple(
            (r.what, r.point, f'{r.planned:.{r.digits}f}', f'{r.simulated:.{r.digits}f}',
             '–' if r.error is None else f'{100 * r.error:+.1f} %')
            for r in records
        ),
        note='VLA robots: the largest fleet that the search of xinfer erc finds, robots that move '
        'all the time and ask as in the first row. Episodes: mean number that the default '
        'controller admits of twice as many robots, after a third of the time, and their calls '
        'per second.',
    )  # fmt: skip
