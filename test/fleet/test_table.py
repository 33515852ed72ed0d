# SPDX-License-Identifier: Apache-2.0
"""The table of a fleet as a person reads it."""

import io
from collections import Counter

from rich.console import Console
from rich.table import Table

from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.errors import Reason
from xinfer_ros.fleet.table import live_table, summary_lines, summary_table

from .reports import report, result


def _rows(table: Table) -> dict[str, list[str]]:
    """Return the cells of each row by its first one, as they are printed."""
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    cells = [
        [cell.strip() for cell in line.strip('│┃').replace('┃', '│').split('│')] for line in lines
    ]
    return {row[0]: row[1:] for row in cells if len(row) > 1}


def test_live_table_shows_every_robot_of_the_plan() -> None:
    reports = {
        'r0': report('r0', starved_ticks=2, unanswered=1),
        'r1': report('r1', phase=ExecutorPhase.HOLDING, chunks=0, on_time=0),
    }
    rows = _rows(live_table('going on', ('r0', 'r1', 'r2'), reports))
    assert rows['robot'] == [
        'state', 'chunks', 'on time', 'P50 ms', 'P99 ms', 'starved ticks', 'unanswered',
    ]  # fmt: skip
    assert rows['r0'] == ['running', '50', '98.0 %', '60', '120', '2', '1']
    assert rows['r1'] == ['holding', '0', '-', '60', '120', '0', '0']
    assert rows['r2'] == ['not heard yet', *'------']


def test_summary_shows_starved_ticks_out_of_all() -> None:
    rows = _rows(summary_table('over', result(report('r0', starved_ticks=7))))
    assert rows['r0'] == ['50', '98.0 %', '60', '120', '7 of 300', '0']


def test_totals_are_told_in_words() -> None:
    run = result(report('r0', starved_ticks=3), report('r1', unanswered=1))
    assert summary_lines(run) == [
        '100 requests, 100 chunks, 98.00 % on time, 1 unanswered, 0 misaddressed; '
        '3 of 600 ticks starved (0.500 %)'
    ]


def test_reasons_are_told_most_frequent_first() -> None:
    run = result(
        report('r0', reasons=Counter({Reason.EXPIRED: 1, Reason.NOT_READY: 2})),
        report('r1', reasons=Counter({Reason.EXPIRED: 4})),
    )
    assert summary_lines(run)[1].endswith('EXPIRED 5, NOT_READY 2')


def test_title_stands_above_the_table() -> None:
    assert live_table('warming up', ('r0',), {}).title == 'warming up'
    assert summary_table('3 robots', result(report())).title == '3 robots'
