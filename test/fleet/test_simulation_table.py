# SPDX-License-Identifier: Apache-2.0
"""Tables of rounds, searches and costs as a person reads them."""

import io

from rich.console import Console

from xinfer_ros.fleet.records import DecisionCostRecord
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.fleet.simulation_table import cost_table, erc_table, population_line, rounds_table

from .fake_rounds import erc_record, round_record


def _printed(table: ReportTable, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table.rich())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_one_fleet_is_shown_round_by_round() -> None:
    table = rounds_table(
        'T', [round_record(attainment=0.96), round_record(round=2, attainment=0.98, mae_ms=None)]
    )
    assert table.title == '18 robots under xinfer: T'
    assert [row[:2] for row in table.rows] == [('1', '96.0'), ('2', '98.0'), ('mean', '97.0')]
    assert [row[-1] for row in table.rows] == ['2.5', '–', '–']


def test_several_fleets_are_shown_with_mean_and_worst() -> None:
    table = rounds_table(
        'T',
        [
            round_record(attainment=0.96),
            round_record(round=2, attainment=0.98),
            round_record(policy='fifo'),
        ],
    )
    assert [row[:4] for row in table.rows] == [
        ('xinfer', '18', '97.0', '96.0'),
        ('fifo', '18', '99.0', '99.0'),
    ]


def test_table_of_rounds_fits_into_120_columns_with_no_cell_cut() -> None:
    table = rounds_table(
        'T', [round_record(policy='foresight_shed', far_late=0.4347), round_record()]
    )
    text = _printed(table)
    assert '…' not in text
    assert 'foresight_shed' in text
    assert '43.47' in text


def test_capacities_are_shown_largest_first() -> None:
    table = erc_table(
        'T', [erc_record(0), erc_record(18), erc_record(40, first_failing=None, failing=())]
    )
    assert [row[1] for row in table.rows] == ['40 or more', '18', '0']
    assert [row[2] for row in table.rows] == ['–', '19', '1']
    assert table.rows[2][3] == '–'


def test_population_that_was_tested_is_told_in_a_line() -> None:
    rounds = [round_record(attainment=0.971), round_record(attainment=0.94)]
    assert population_line('xinfer', 18, rounds, []) == (
        'xinfer with 18 robots: 97.1 94.0 % on time, passes'
    )
    assert population_line('xinfer', 18, rounds, ['too late']).endswith('fails: too late')


def test_costs_are_shown_beside_the_published_ones() -> None:
    records = [
        DecisionCostRecord(
            implementation='native', policy=policy, robots=robots, p50_us=2.04, p99_us=4.96,
            calls=9, repeats=3, period_ms=180.0,
        )
        for policy, robots in (('xinfer', 8), ('xinfer', 100), ('foresight', 8))
    ]  # fmt: skip
    table = cost_table(records, {8: (41, 63)})
    assert table.columns == ('policy', 'implementation', '8 robots', '100 robots')
    assert table.rows == (
        ('xinfer', 'published', '41 / 63', '–'),
        ('xinfer', 'native', '2.0 / 5.0', '2.0 / 5.0'),
        ('foresight', 'native', '2.0 / 5.0', '–'),
    )
    assert 'Cost of a decision [us]' in _printed(table)
