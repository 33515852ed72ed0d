# SPDX-License-Identifier: Apache-2.0
"""A server and robots that replay recorded episodes; the same node list as `xinfer fleet`."""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node

from launch import LaunchDescription
from xinfer_ros.episodes.bag import shipped_bags
from xinfer_ros.ros.node_list import (
    CONFIG_FILES,
    DEFAULT_ROBOTS,
    FleetPlan,
    NodeSpec,
    fleet_nodes,
    robot_ids,
)
from xinfer_ros.ros.process import share_folder


def action(spec: NodeSpec) -> Node:
    """Return a node list's entry as a launch action."""
    kind = LifecycleNode if spec.lifecycle else Node
    named = {'name': spec.name, 'namespace': spec.namespace} if spec.name else {}
    return kind(
        package='xinfer_ros',
        executable=spec.executable,
        arguments=list(spec.arguments),
        parameters=[*map(str, spec.files), *([dict(spec.parameters)] if spec.parameters else [])],
        respawn=spec.respawn,
        respawn_delay=0.5,
        output='screen',
        **named,
    )


def fleet(context) -> list[Node]:
    """Return the actions of the fleet that the launch arguments describe."""
    value = {
        name: LaunchConfiguration(name).perform(context)
        for name in ('robots', 'bags', 'params_files')
    }
    share = share_folder()
    bags = value['bags'] or ','.join(shipped_bags(share / 'episodes'))
    added = [Path(name) for name in value['params_files'].split(',') if name]
    plan = FleetPlan(
        robots=robot_ids(int(value['robots'])),
        bags=tuple(bags.split(',')),
        files=(*(share / 'config' / name for name in CONFIG_FILES), *added),
    )
    return [action(spec) for spec in fleet_nodes(plan)]


def generate_launch_description() -> LaunchDescription:
    """Describe the fleet to `ros2 launch`."""
    arguments = (
        ('robots', str(DEFAULT_ROBOTS), 'number of robots'),
        ('bags', '', 'recordings, comma-separated; empty: all shipped episodes'),
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
