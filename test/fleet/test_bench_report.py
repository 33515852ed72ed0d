# SPDX-License-Identifier: Apache-2.0
"""Table, pictures and page of a benchmark."""

import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_report import BenchReport, write_page, write_pictures
from xinfer_ros.fleet.bench_table import bench_table, refusal_lines
from xinfer_ros.fleet.machine_facts import machine_facts
from xinfer_ros.fleet.physical_projection import PhysicalProjection
from xinfer_ros.fleet.stage_second import prediction_errors, stage_second

from .bench_results import fleet_result
from .test_stage_second import MS, run

RESULTS = [
    fleet_result(robots, latency, system=system, wrong=int(system == 'floor'))
    for system, latency in (('ours', 20.0), ('openpi', 400.0), ('floor', 1.0))
    for robots in (8, 16)
]
NAMES = ('latency', 'on_time', 'projection', 'second', 'prediction')


@pytest.fixture(scope='module')
def report() -> BenchReport:
    """Return a report with every picture."""
    return BenchReport(
        title='<workload> & all',
        command='xinfer bench --robots 8,16',
        records=tuple(result.record for result in RESULTS),
        facts=machine_facts(),
        projection=PhysicalProjection.published(),
        second=stage_second(run(), 200 * MS),
        second_title='Our lanes',
        errors=prediction_errors(run(), 0, 2_000 * MS),
    )


def test_table_has_a_row_a_system_and_fleet() -> None:
    table = bench_table('t', [result.record for result in RESULTS])
    assert [row[:2] for row in table.rows][:3] == [('ours', '8'), ('ours', '16'), ('openpi', '8')]
    assert table.rows[-1][table.columns.index('errors')] == '1 / 0 / 0'
    assert 'Medians' not in table.note


def test_rounds_of_a_fleet_are_one_row() -> None:
    rounds = [fleet_result(4, ms, seed=ms, refused=1).record for ms in (10, 30, 20)]
    table = bench_table('t', rounds)
    (row,) = table.rows
    assert row[table.columns.index('P50 ms')] == '20.0'
    assert row[table.columns.index('errors')] == '0 / 0 / 3'
    assert refusal_lines(rounds)[0] == (
        'ours with 4 robots, seed 10: answers without rows: EXPIRED 1'
    )
    assert table.note.startswith('Medians of the rounds')


def test_page_holds_everything_and_loads_nothing(report: BenchReport, tmp_path: Path) -> None:
    path = tmp_path / 'bench.html'
    write_page(path, report)
    text = path.read_text()
    assert '&lt;workload&gt; &amp; all' in text
    assert 'xinfer bench --robots 8,16' in text
    assert text.count('<svg') == len(NAMES)
    assert '<script' not in text
    # names of XML dialects are no addresses that anything is loaded from
    assert not re.search(r'(?:src|href)="(?!#|data:)[^"]', text)
    assert not re.search(r'url\((?!#)', text)


def test_every_picture_is_a_file(report: BenchReport, tmp_path: Path) -> None:
    write_pictures(tmp_path, report)
    for name in NAMES:
        data = (tmp_path / f'bench_{name}.png').read_bytes()
        width, height = struct.unpack('>II', data[16:24])
        assert width > 600
        assert height > 200


def test_projection_beyond_the_measurements_says_so(report: BenchReport) -> None:
    _, caption = report.pictures()['projection']
    assert 'Not measured here but projected' in caption
    assert 'beyond any delay that was measured' in caption


def test_single_fleet_is_drawn_as_bars(report: BenchReport) -> None:
    """A line of one point shows nothing."""
    single = replace(report, records=tuple(r.record for r in RESULTS if r.record.robots == 8))
    for name in ('latency', 'on_time', 'projection'):
        figure, _ = single.pictures()[name]
        assert all(axes.patches for axes in figure.axes)
        assert all('8 robots' in axes.get_xlabel() for axes in figure.axes)


def test_report_without_a_log_has_no_lanes() -> None:
    report = BenchReport.of(
        RESULTS, title='t', command='c', facts=machine_facts(), log_folder=None, second=1.0
    )
    assert set(report.pictures()) == {'latency', 'on_time', 'projection'}


def test_page_that_cannot_be_written_is_told(report: BenchReport, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='cannot be written'):
        write_page(tmp_path / 'no' / 'bench.html', report)
