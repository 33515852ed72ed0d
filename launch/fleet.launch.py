# SPDX-License-Identifier: Apache-2.0
"""A server and robots that replay recorded episodes; the same node list as `xinfer fleet`."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node

from launch import LaunchDescription
from xinfer_ros.ros.node_list import FleetPlan, NodeSpec, fleet_nodes, robot_ids

CONFIG = Path(get_package_share_directory('xinfer_ros')) / 'config'
FILES = ','.join(str(CONFIG / name) for name in ('server.yaml', 'executor.yaml', 'fleet.yaml'))
BAGS = 'transfer_cube_0,transfer_cube_1,transfer_cube_2'


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
    plan = FleetPlan(
        robots=robot_ids(int(value['robots'])),
        bags=tuple(value['bags'].split(',')),
        files=tuple(Path(name) for name in value['params_files'].split(',') if name),
    )
    return [action(spec) for spec in fleet_nodes(plan)]


def generate_launch_description() -> LaunchDescription:
    """Describe the fleet to `ros2 launch`."""
    return LaunchDescription(
        [
            DeclareLaunchArgument('robots', default_value='4', description='number of robots'),
            DeclareLaunchArgument(
                'bags', default_value=BAGS, description='recordings, comma-separated'
            ),
            DeclareLaunchArgument(
                'params_files', default_value=FILES, description='parameter files, the last wins'
            ),
            OpaqueFunction(function=fleet),
        ]
    )
