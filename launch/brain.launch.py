# SPDX-License-Identifier: Apache-2.0
"""The brain node: the gateway before the LLM servers, and its ROS actions."""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from xinfer_ros.ros.launch_actions import node_action
from xinfer_ros.ros.node_list import brain_node
from xinfer_ros.ros.process import share_folder

ARGUMENTS = (
    (
        'params_file',
        '',
        'parameter file for the brain node; empty: the shipped one',
    ),
    (
        'upstreams',
        '',
        'LLM servers, comma-separated, http://HOST:PORT; empty: as the file',
    ),
    ('controller', '', 'what admits episodes; empty: as the file'),
)


def brain(context) -> list[Node]:
    """Return the action of the brain node that the launch arguments describe."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    file = value['params_file'] or share_folder() / 'config' / 'brain.yaml'
    parameters: dict[str, object] = {}
    if value['controller']:
        parameters['controller'] = value['controller']
    if value['upstreams']:
        parameters['upstreams'] = [url for url in value['upstreams'].split(',') if url]
    return [node_action(brain_node([Path(file)], parameters))]


def generate_launch_description() -> LaunchDescription:
    """Describe the brain node to `ros2 launch`."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, default, text in ARGUMENTS
            ),
            OpaqueFunction(function=brain),
        ]
    )
