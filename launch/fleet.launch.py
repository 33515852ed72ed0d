# SPDX-License-Identifier: Apache-2.0
"""A server and robots that replay recorded episodes; the same node list as `xinfer fleet`."""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from xinfer_ros.episodes.sources import all_episodes, shipped_episodes
from xinfer_ros.ros.launch_actions import node_action
from xinfer_ros.ros.node_list import (
    CONFIG_FILES,
    DEFAULT_ROBOTS,
    DEFAULT_SEED,
    FleetPlan,
    fleet_nodes,
    robot_ids,
)
from xinfer_ros.ros.process import share_folder


def fleet(context) -> list[Node]:
    """Return the actions of the fleet that the launch arguments describe."""
    value = {
        name: LaunchConfiguration(name).perform(context)
        for name in ('robots', 'bags', 'params_files', 'seed')
    }
    share = share_folder()
    shipped = share / 'episodes'
    bags = [name for name in value['bags'].split(',') if name] or shipped_episodes(shipped)
    added = [Path(name) for name in value['params_files'].split(',') if name]
    plan = FleetPlan(
        robots=robot_ids(int(value['robots'])),
        bags=tuple(map(str, all_episodes(bags, shipped))),
        files=(*(share / 'config' / name for name in CONFIG_FILES), *added),
        seed=int(value['seed']),
    )
    return [node_action(spec) for spec in fleet_nodes(plan)]


def generate_launch_description() -> LaunchDescription:
    """Describe the fleet to `ros2 launch`."""
    arguments = (
        ('robots', str(DEFAULT_ROBOTS), 'number of robots'),
        ('bags', '', 'episodes of any readable format, comma-separated; empty: all shipped ones'),
        ('seed', str(DEFAULT_SEED), 'seed of the place at which each robot begins its episode'),
        ('params_files', '', 'parameter files, comma-separated, stronger than the shipped ones'),
    )
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, default, text in arguments
            ),
            OpaqueFunction(function=fleet),
        ]
    )
