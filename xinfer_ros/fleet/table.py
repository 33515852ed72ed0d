# SPDX-License-Identifier: Apache-2.0
"""The live table of a fleet, and its summary."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table

from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason
from xinfer_ros.fleet.verdict import FleetResult

_COLUMNS = ('chunks', 'on time', 'P50 ms', 'P99 ms', 'starved ticks', 'unanswered')


def _table(title: str, first: Sequence[str]) -> Table:
    table = Table(title=title, title_justify='left')
    for name in first:
        table.add_column(name)
    for name in _COLUMNS:
        table.add_column(name, justify='right')
    return table


def _numbers(chunks: int, on_time: int, p50_ns: int, p99_ns: int) -> list[str]:
    share = f'{100 * on_time / chunks:.1f} %' if chunks else '-'
    return [str(chunks), share, f'{p50_ns / 1e6:.0f}', f'{p99_ns / 1e6:.0f}']


def live_table(title: str, robots: Sequence[str], reports: Mapping[str, RobotReport]) -> Table:
    """Return the table of a running fleet; counters since each robot's start."""
    table = _table(title, ('robot', 'state'))
    for robot in robots:
        report = reports.get(robot)
        if report is None:
            table.add_row(robot, '[dim]not heard yet[/]', *['-'] * len(_COLUMNS))
            continue
        colour = 'green' if report.phase is ExecutorPhase.RUNNING else 'yellow'
        table.add_row(
            robot,
            f'[{colour}]{report.phase.name.lower()}[/]',
            *_numbers(report.chunks, report.on_time, report.latency_p50_ns, report.latency_p99_ns),
            str(report.starved_ticks),
            str(report.unanswered),
        )
    return table


def summary_table(title: str, result: FleetResult) -> Table:
    """Return the table of a run that is over; counters since the end of the warm-up."""
    table = _table(title, ('robot',))
    for robot in result.robots:
        table.add_row(
            robot.robot_id,
            *_numbers(robot.chunks, robot.on_time, robot.latency_p50_ns, robot.latency_p99_ns),
            f'{robot.starved_ticks} of {robot.ticks}',
            str(robot.unanswered),
        )
    return table


def summary_lines(result: FleetResult) -> list[str]:
    """Return the totals of a run in words."""
    reasons: Counter[Reason] = sum((r.reasons for r in result.robots), Counter())
    lines = [
        f'{result.total("requests")} requests, {result.total("chunks")} chunks, '
        f'{100 * result.on_time_share:.2f} % on time, {result.total("unanswered")} unanswered, '
        f'{result.total("misaddressed")} misaddressed; '
        f'{result.total("starved_ticks")} of {result.total("ticks")} ticks starved '
        f'({100 * result.starved_share:.3f} %)'
    ]
    if reasons:
        counts = ', '.join(f'{reason.name} {count}' for reason, count in reasons.most_common())
        lines.append(f'answers without a chunk or refused: {counts}')
    return lines
