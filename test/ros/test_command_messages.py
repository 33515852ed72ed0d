# SPDX-License-Identifier: Apache-2.0
"""Commands that are packed once and patched say what a message would."""

import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from xinfer_ros.ros.command_messages import command_messages


@pytest.mark.parametrize('num_joints', [1, 2, 6, 7, 14])
@pytest.mark.parametrize(
    ('interface', 'field', 'other'),
    [('position', 'positions', 'velocities'), ('velocity', 'velocities', 'positions')],
)
def test_packed_trajectory_holds_names_values_and_time(
    num_joints: int, interface: str, field: str, other: str
) -> None:
    names = [f'joint_{"x" * (index % 4)}{index}' for index in range(num_joints)]
    messages = command_messages('joint_trajectory', names, interface, lambda: None)
    for number, duration_ns in ((0, 30_000_000), (1, 1_033_333_333), (2, 0)):
        values = (np.arange(num_joints) - 3.0 + number).astype(np.float32)
        read = deserialize_message(messages.of(values, duration_ns), JointTrajectory)
        assert list(read.joint_names) == names
        (point,) = read.points
        assert getattr(point, field).tolist() == values.tolist()
        assert len(getattr(point, other)) == 0
        time = point.time_from_start
        assert time.sec * 1_000_000_000 + time.nanosec == duration_ns
        assert (read.header.stamp.sec, read.header.stamp.nanosec) == (0, 0)


def test_a_packed_command_is_not_changed_by_the_next_one() -> None:
    messages = command_messages('joint_trajectory', ['a'], 'position', lambda: None)
    first = messages.of(np.array([1.0], np.float32), 1)
    messages.of(np.array([2.0], np.float32), 2)
    assert deserialize_message(first, JointTrajectory).points[0].positions[0] == 1.0
