# SPDX-License-Identifier: Apache-2.0
"""What a fleet consists of."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.node_list import FleetPlan, NodeSpec, brain_node, fleet_nodes, robot_ids

CONFIG = Path(__file__).parents[2] / 'config'
SHIPPED = tuple(CONFIG / name for name in ('server.yaml', 'executor.yaml', 'fleet.yaml'))
BAGS = ('first', 'second', 'third')


def _nodes(num_robots: int, **changes) -> list[NodeSpec]:
    return fleet_nodes(
        FleetPlan(**{'robots': robot_ids(num_robots), 'bags': BAGS, 'files': (), **changes})
    )


def _robots(spec: NodeSpec) -> list[str]:
    assert spec.arguments[::2] == ('--robot',) * (len(spec.arguments) // 2)
    return [text.split('=')[0] for text in spec.arguments[1::2]]


def test_server_comes_first_and_is_started_again_when_it_ends() -> None:
    server, *others = _nodes(5)
    assert (server.executable, server.namespace, server.name) == (
        'server',
        '/fleet',
        'xinfer_server',
    )
    assert server.respawn
    assert server.lifecycle
    assert [spec.executable for spec in others] == ['robots', 'robots']
    assert not any(spec.respawn or spec.lifecycle for spec in others)


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 130), st.integers(1, 70))
def test_robots_are_spread_over_processes_without_a_gap(num_robots: int, size: int) -> None:
    _, *processes = _nodes(num_robots, robots_per_process=size)
    groups = [_robots(spec) for spec in processes]
    assert [robot for group in groups for robot in group] == list(robot_ids(num_robots))
    assert all(len(group) == size for group in groups[:-1])
    assert 1 <= len(groups[-1]) <= size


def test_robots_take_turns_with_the_bags_and_do_not_move_in_step() -> None:
    _, first, second = _nodes(5)
    words = [*first.arguments[1::2], *second.arguments[1::2]]
    played = [word.partition('@')[0] for word in words]
    assert played == ['r0=first', 'r1=second', 'r2=third', 'r3=first', 'r4=second']
    assert len({word.partition('@')[2] for word in words}) == 5


def test_places_at_which_robots_begin_depend_on_the_seed_alone() -> None:
    first, again, other = ([spec.arguments for spec in _nodes(8, seed=seed)] for seed in (3, 3, 4))
    assert first == again != other


def test_each_process_gets_only_the_files_that_concern_it(tmp_path: Path) -> None:
    files = {}
    for section in ('/fleet/xinfer_server', '/**/executor', '/r0/replay', '/r5/executor', '/**'):
        path = files[section] = tmp_path / f'{len(files)}.yaml'
        path.write_text(f'{section}:\n  ros__parameters: {{use_sim_time: false}}\n')
    server, first, second = _nodes(8, files=tuple(files.values()))
    assert server.files == (files['/fleet/xinfer_server'], files['/**'])
    assert first.files == (files['/**/executor'], files['/r0/replay'], files['/**'])
    assert second.files == (files['/**/executor'], files['/r5/executor'], files['/**'])


def test_order_of_the_files_is_kept(tmp_path: Path) -> None:
    """LC-01: the last wins, so the order must reach the process."""
    files = []
    for name in ('z', 'a', 'm'):
        path = tmp_path / f'{name}.yaml'
        path.write_text('/**:\n  ros__parameters: {use_sim_time: false}\n')
        files.append(path)
    assert all(spec.files == tuple(files) for spec in _nodes(5, files=tuple(files)))


@pytest.mark.parametrize(
    ('section', 'nearest'),
    [
        ('/fleet/server', '/fleet/xinfer_server'),
        ('/flet/xinfer_server', '/fleet/xinfer_server'),
        ('/r9/executor', '/r[01]/executor'),
        ('/r1/exekutor', '/r1/executor'),
    ],
)
def test_misdirected_file_is_refused(tmp_path: Path, section: str, nearest: str) -> None:
    """LC-01: a file keyed to a node or namespace that this fleet has not."""
    path = tmp_path / 'wrong.yaml'
    path.write_text(f'{section}:\n  ros__parameters: {{use_sim_time: false}}\n')
    with pytest.raises(ConfigError) as caught:
        _nodes(2, files=(*SHIPPED, path))
    assert section in str(caught.value)
    assert re.search(rf'did you mean {nearest}\?', str(caught.value))
    assert str(path) in str(caught.value)


def test_misspelt_namespace_of_the_server_is_refused_beside_sections_that_fit(
    tmp_path: Path,
) -> None:
    """LC-01: the whole fleet is known here, so a section for no node of it can't be meant."""
    path = tmp_path / 'mixed.yaml'
    path.write_text(
        '/**/executor:\n  ros__parameters: {commitment_steps: 3}\n'
        '/flet/xinfer_server:\n  ros__parameters: {max_robots: 3}\n'
    )
    with pytest.raises(ConfigError, match='/flet/xinfer_server'):
        _nodes(2, files=(path,))


def test_values_for_the_server_reach_the_server_alone() -> None:
    server, *others = _nodes(5, server={'model': 'echo'})
    assert dict(server.parameters) == {'model': 'echo'}
    assert all(not spec.parameters for spec in others)


@pytest.mark.parametrize('changes', [{'robots': ()}, {'bags': ()}])
def test_fleet_without_robots_or_bags_is_refused(changes: dict) -> None:
    with pytest.raises(ConfigError, match='at least one robot and one bag'):
        _nodes(2, **changes)


def test_fleet_of_128_robots_fits_what_fast_dds_sees_of_a_host() -> None:
    """The docstring of FleetPlan: Fast DDS sees at most 32 processes a host."""
    assert len(_nodes(128, robots_per_process=5)) <= 32


def test_the_brain_node_takes_its_shipped_file_and_refuses_a_wrong_setting() -> None:
    spec = brain_node([CONFIG / 'brain.yaml'], {'controller': 'static'})
    assert (spec.namespace, spec.name, spec.executable) == ('/fleet', 'xinfer_brain', 'brain')
    assert not spec.lifecycle
    with pytest.raises(ConfigError, match='did you mean static'):
        brain_node([], {'controller': 'statik'})
    with pytest.raises(ConfigError, match='is for no node started here'):
        brain_node([CONFIG / 'server.yaml'], {})
