# SPDX-License-Identifier: Apache-2.0
"""The executor of a bringup: its entry in a node list, and the launch file to include."""

import importlib.util
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.node_list import executor_node, given_parameters

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / 'config').glob('robot_*.yaml'))


def test_executor_of_a_bringup_is_one_managed_process() -> None:
    spec = executor_node('arm', CONFIGS[:1], {'robot_id': 'left', 'use_sim_time': True})
    assert (spec.executable, spec.name, spec.namespace) == ('executor', 'executor', '/arm')
    assert spec.lifecycle
    assert not spec.respawn  # an arm that moves again by itself after a fault is a surprise
    assert spec.parameters == {'robot_id': 'left', 'use_sim_time': True}


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_shipped_examples_are_valid(path: Path) -> None:
    assert executor_node('/r1', [path], {}).files == (path,)


def test_example_of_the_readme_is_valid(tmp_path: Path) -> None:
    section = (ROOT / 'README.md').read_text().split('## Put it on your robot')[1]
    example = tmp_path / 'arm.yaml'
    example.write_text(section.split('```yaml')[1].split('```')[0])
    assert executor_node('/arm', [example], {}).namespace == '/arm'


def test_wrong_settings_stop_a_launch(tmp_path: Path) -> None:
    """LC-01 for a robot of one's own."""
    wrong = tmp_path / 'robot.yaml'
    wrong.write_text('/**/executor:\n  ros__parameters:\n    comand_topics: [a]\n')
    with pytest.raises(ConfigError, match=r'comand_topics.*did you mean command_topics'):
        executor_node('/r1', [wrong], {})
    wrong.write_text('/r2/executor:\n  ros__parameters:\n    robot_id: a\n')
    with pytest.raises(ConfigError, match='is for no node started here'):
        executor_node('/r1', [wrong], {})
    with pytest.raises(ConfigError, match='namespace is empty'):
        executor_node('/', [], {})


def test_launch_argument_that_is_not_given_leaves_it_to_the_file() -> None:
    """`autostart: false` of a file would else be overruled, and the robot would move."""
    assert given_parameters({'autostart': '', 'use_sim_time': '', 'robot_id': ''}) == {}
    given = given_parameters({'autostart': 'False', 'use_sim_time': 'true', 'robot_id': 'left'})
    assert given == {'autostart': False, 'use_sim_time': True, 'robot_id': 'left'}
    with pytest.raises(ConfigError, match="autostart is 'flase'; allowed: true, false"):
        given_parameters({'autostart': 'flase'})


def test_launch_file_starts_that_entry() -> None:
    reason = 'launch_ros is not on PyPI: needs a sourced ROS 2 installation'
    pytest.importorskip('launch_ros', reason=reason)
    from launch_ros.actions import LifecycleNode

    from launch import LaunchContext

    path = ROOT / 'launch' / 'robot.launch.py'
    spec = importlib.util.spec_from_file_location('robot_launch', path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    context = LaunchContext()
    context.launch_configurations.update({name: value for name, value, _ in module.ARGUMENTS})
    actions = module.robot(context)
    assert [action.node_executable for action in actions] == ['executor']
    assert isinstance(actions[0], LifecycleNode)
    assert all(text for _, _, text in module.ARGUMENTS)
