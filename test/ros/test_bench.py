# SPDX-License-Identifier: Apache-2.0
"""The fleet benchmark over ROS 2: emulated robots against models that need no torch, short."""

import json
from pathlib import Path

import pytest

from xinfer_ros.cli.live_server import LiveServer
from xinfer_ros.errors import ConfigError
from xinfer_ros.msg import ServerState
from xinfer_ros.ros import qos
from xinfer_ros.ros.node_list import NodeSpec

from .graph import Graph

# CI shares its cores: what is checked is what is told, not how quick it is; a request is given up
# after twice its budget
PATIENT = ('--workload', 'constant:5000', '--max-lateness-ms', '1000')
SHORT = ('bench', '--duration', '2', '--warm-up', '0.5', *PATIENT)
NUMBERS = (
    'robots', 'rps', 'p50_ms', 'p95_ms', 'p99_ms', 'server_cpu_ms_per_request', 'attainment',
    'goodput_hz', 'lateness_p99_ms',
)  # fmt: skip


def test_two_robots_are_measured_and_reported(graph: Graph, tmp_path: Path) -> None:
    records_file, page = tmp_path / 'bench.json', tmp_path / 'bench.html'
    done = graph.command(
        *SHORT, '--model', 'echo', '--robots', '2', '--json', str(records_file), '--html',
        str(page),
    )  # fmt: skip
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
        *SHORT, '--duration', '1', '--robots', '3,2', '--x-ms', '0', '--images', 'raw',
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


class SlowClock:
    """A clock by which a busy machine has ten times as long to hear somebody."""

    def __init__(self) -> None:
        self._now_ns = 0

    def now_ns(self) -> int:
        """Return a time ten milliseconds later than before."""
        self._now_ns += 10_000_000
        return self._now_ns


def test_second_server_beside_a_running_one_is_refused(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Robots of the running one would be told by the other that it does not know them."""
    monkeypatch.setenv('ROS_DOMAIN_ID', graph.env['ROS_DOMAIN_ID'])
    state = graph.node.create_publisher(ServerState, '/fleet/server_state', qos.STATE)
    state.publish(ServerState(state=ServerState.STARTING))
    server = LiveServer(NodeSpec(executable='server'), (), 'jpeg', 1.0, SlowClock(), print)
    try:
        with pytest.raises(ConfigError, match='a server runs in this ROS domain already'):
            server.start()
    finally:
        server.close()


def test_capacity_of_a_live_server_is_searched_for(graph: Graph, tmp_path: Path) -> None:
    records_file = tmp_path / 'erc.json'
    done = graph.command(
        'erc', '--on', 'live', '--x-ms', '0', '--max-robots', '1', '--rounds', '1', '--warm-up',
        '0.5', '--end', '1.5', '--criterion', 'p50:5000', *PATIENT, '--json', str(records_file),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = json.loads(records_file.read_text())
    assert (record['erc'], record['first_failing'], record['passing']) == (1, None, [1])
    assert 'foresight with 1 robots' in done.stdout
    assert 'foresight: no fleet of up to 1 robots fails' in done.stdout
