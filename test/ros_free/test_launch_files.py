# SPDX-License-Identifier: Apache-2.0
"""fleet.launch.py starts the node list, action by action; needs a ROS 2 with ``launch``."""

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

import pytest

from xinfer_ros.episodes.sources import all_episodes, shipped_episodes
from xinfer_ros.ros.node_list import CONFIG_FILES, FleetPlan, fleet_nodes, robot_ids
from xinfer_ros.ros.process import share_folder

LAUNCH = Path(__file__).parents[2] / 'launch'


@pytest.fixture
def fleet_launch() -> ModuleType:
    """Return the module of fleet.launch.py."""
    reason = 'launch_ros is not on PyPI: needs a sourced ROS 2 installation'
    pytest.importorskip('launch_ros', reason=reason)
    spec = importlib.util.spec_from_file_location('fleet_launch', LAUNCH / 'fleet.launch.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _description(path: Path) -> object:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    return get_launch_description_from_python_launch_file(str(path))


def test_launch_file_starts_the_node_list(fleet_launch: ModuleType) -> None:
    """The same executables with the same arguments in the same order, by default and otherwise."""
    from launch.actions import DeclareLaunchArgument
    from launch.substitutions import TextSubstitution
    from launch.utilities import perform_substitutions
    from launch_ros.actions import LifecycleNode

    from launch import LaunchContext

    context, shipped = LaunchContext(), share_folder() / 'episodes'
    defaults = {
        entity.name: perform_substitutions(context, entity.default_value)
        for entity in fleet_launch.generate_launch_description().entities
        if isinstance(entity, DeclareLaunchArgument)
    }
    for robots in (defaults['robots'], '9'):
        context.launch_configurations.update({**defaults, 'robots': robots})
        actions = fleet_launch.fleet(context)
        plan = FleetPlan(
            robots=robot_ids(int(robots)),
            bags=tuple(map(str, all_episodes(shipped_episodes(shipped), shipped))),
            files=tuple(share_folder() / 'config' / name for name in CONFIG_FILES),
            seed=int(defaults['seed']),
        )
        nodes = fleet_nodes(plan)
        assert [action.node_executable for action in actions] == [n.executable for n in nodes]
        assert [action.node_package for action in actions] == ['xinfer_ros'] * len(nodes)
        for action, node in zip(actions, nodes, strict=True):
            assert isinstance(action, LifecycleNode) == node.lifecycle
            texts = itertools.takewhile(
                lambda word: all(isinstance(part, TextSubstitution) for part in word),
                action.cmd[1:],
            )
            words = [perform_substitutions(context, word) for word in texts]
            own = itertools.takewhile(lambda word: word != '--ros-args', words)
            assert tuple(own) == node.arguments


@pytest.mark.parametrize('name', ['fleet.launch.py', 'replay.launch.py'])
def test_launch_file_describes_every_argument(fleet_launch: ModuleType, name: str) -> None:
    description = _description(LAUNCH / name)
    arguments = description.get_launch_arguments()  # type: ignore[attr-defined]
    assert arguments
    assert all(argument.description for argument in arguments)
