# SPDX-License-Identifier: Apache-2.0
"""
The executor of one robot, to be included in its bringup; once for each robot.

Topics are remapped from outside: a ``SetRemap`` in the group that includes this file.
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from xinfer_ros.ros.launch_actions import node_action
from xinfer_ros.ros.node_list import executor_node, given_parameters

WHERE = ('namespace', 'params_file')
ARGUMENTS = (
    ('namespace', '/r0', 'namespace of the robot, one of its own'),
    ('params_file', '', 'parameter file with a section for the executor'),
    ('robot_id', '', 'id in the fleet; empty: the namespace'),
    ('server', '', 'namespace of the server; empty: /fleet'),
    ('urdf_file', '', 'URDF with the limits of the joints; empty: none'),
    ('robot_description_topic', '', 'latched topic with the URDF; empty: none'),
    ('use_sim_time', '', 'true: let ticks follow /clock; empty: as params_file says'),
    ('autostart', '', 'false: a lifecycle manager does it; empty: as params_file says, or true'),
)


def robot(context) -> list[Node]:
    """Return the action of the executor that the launch arguments describe."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    parameters = given_parameters({k: text for k, text in value.items() if k not in WHERE})
    files = [Path(value['params_file'])] if value['params_file'] else []
    return [node_action(executor_node(value['namespace'], files, parameters))]


def generate_launch_description() -> LaunchDescription:
    """Describe the executor to `ros2 launch`."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, default, text in ARGUMENTS
            ),
            OpaqueFunction(function=robot),
        ]
    )
