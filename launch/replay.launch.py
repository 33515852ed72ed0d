# SPDX-License-Identifier: Apache-2.0
"""Plays a recorded episode as the sensors of a robot."""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription

ARGUMENTS = (
    ('bag', 'transfer_cube_0', str, 'episode: a path, PATH#NAME, or a shipped name'),
    ('namespace', '/r0', None, 'namespace of the robot that is played'),
    ('rate', '1.0', float, 'speed, 1 as recorded'),
    ('loop', 'true', bool, 'start over at the end'),
    ('start_offset_s', '0.0', float, 'where in it to begin [s]'),
)


def generate_launch_description() -> LaunchDescription:
    """Describe the replay to `ros2 launch`."""
    parameters = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, _, kind, _ in ARGUMENTS
        if kind is not None
    }
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, default, _, text in ARGUMENTS
            ),
            Node(
                package='xinfer_ros',
                executable='replay',
                name='replay',
                namespace=LaunchConfiguration('namespace'),
                parameters=[parameters],
                output='screen',
            ),
        ]
    )
