# SPDX-License-Identifier: Apache-2.0
"""The fleet benchmark over ROS 2: emulated robots against the tiny model, short."""

import json
from pathlib import Path

from .graph import Graph

# CI shares its cores: what is checked is what is told, not how quick it is
SHORT = ('bench', '--duration', '3', '--warm-up', '1', '--max-lateness-ms', '1000')
NUMBERS = (
    'robots', 'rps', 'p50_ms', 'p95_ms', 'p99_ms', 'server_cpu_ms_per_request', 'attainment',
    'goodput_hz', 'lateness_p99_ms',
)  # fmt: skip


def test_two_robots_are_measured_and_reported(graph: Graph, tmp_path: Path) -> None:
    records_file, page = tmp_path / 'bench.json', tmp_path / 'bench.html'
    done = graph.command(*SHORT, '--robots', '2', '--json', str(records_file), '--html', str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = json.loads(records_file.read_text())
    assert (record['system'], record['robots'], record['x_ms']) == ('ours', 2, None)
    assert (record['wrong'], record['unanswered']) == (0, 0)
    assert all(record[name] > 0 for name in NUMBERS if record[name] is not None)
    assert record['requests'] >= 2
    assert 'Error of the predicted end of a unit' in page.read_text()
    assert 'ours' in done.stdout


def test_fleets_are_measured_in_turn_on_one_server(graph: Graph, tmp_path: Path) -> None:
    """A second fleet takes the places of the first, whose sessions go on; pictures are raw."""
    records_file = tmp_path / 'bench.json'
    done = graph.command(
        *SHORT, '--duration', '1.5', '--robots', '3,2', '--x-ms', '0', '--images', 'raw',
        '--robots-per-process', '2', '--json', str(records_file),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = json.loads(records_file.read_text())
    assert (first['robots'], second['robots'], first['images']) == (3, 2, 'raw')
    for record in (first, second):
        assert (record['wrong'], record['unanswered'], record['refused']) == (0, 0, 0)
        assert record['x_ms'] == 0.0


def test_robots_that_the_server_refuses_are_told(graph: Graph) -> None:
    done = graph.command(*SHORT, '--robots', '2', '--set', 'max_robots=1', '--x-ms', '0')
    assert done.returncode == 1
    assert 'REJECTED_FLEET_FULL' in done.stdout
    assert 'NOT MEASURED' in done.stdout


def test_capacity_of_a_live_server_is_searched_for(graph: Graph, tmp_path: Path) -> None:
    records_file = tmp_path / 'erc.json'
    done = graph.command(
        'erc', '--on', 'live', '--x-ms', '0', '--max-robots', '1', '--rounds', '1', '--warm-up',
        '0.5', '--end', '2', '--criterion', 'p50:5000', '--max-lateness-ms', '1000',
        '--json', str(records_file),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = json.loads(records_file.read_text())
    assert (record['erc'], record['first_failing'], record['passing']) == (1, None, [1])
    assert 'foresight with 1 robots' in done.stdout
