# SPDX-License-Identifier: Apache-2.0
"""Rows as the messages that controllers take; docs/robot.md says what each controller accepts."""

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from xinfer_ros.core.chunk import Rows

SECOND_NS = 1_000_000_000
_TIME = struct.Struct('<iI')  # builtin_interfaces/Duration


class CommandMessages(Protocol):
    """Makes the messages of one command topic."""

    takes_time: bool  # whether the controller may be told how long to take

    def of(self, values: Rows, duration_ns: int) -> Any:
        """
        Return a command, as a message or packed; it is valid until the next one is made.

        :param values: ``(num_joints,)`` of this topic's joints
        :param duration_ns: when they are to be reached, from now [ns]
        """
        ...


def _doubles(values: Rows) -> 'array[float]':
    """Return numbers in the one form that rclpy stores without touching each element."""
    return array('d', np.asarray(values, np.float64).tobytes())


class TrajectoryMessages:
    """
    One point for a joint_trajectory_controller, packed; stamp 0: it starts now.

    All but the values and the time stays as it is, so it is packed once: rclpy takes longer to
    read a message with its names than everything else in a tick does.

    :param names: its joints
    :param field: ``positions`` or ``velocities``
    """

    takes_time = True

    def __init__(self, names: Sequence[str], field: str) -> None:
        mark, time = np.arange(1, len(names) + 1, dtype='<f8').tobytes(), (0x5EC, 0x9A90)
        point = JointTrajectoryPoint()
        setattr(point, field, array('d', mark))
        point.time_from_start.sec, point.time_from_start.nanosec = time
        message = JointTrajectory(joint_names=list(names), points=[point])
        self._packed = bytearray(serialize_message(message))
        begin = self._packed.index(mark)
        self._values = slice(begin, begin + len(mark))
        self._time = self._packed.index(_TIME.pack(*time), self._values.stop)

    def of(self, values: Rows, duration_ns: int) -> bytes:
        """Return a trajectory of one point."""
        self._packed[self._values] = np.asarray(values, '<f8').tobytes()
        _TIME.pack_into(self._packed, self._time, *divmod(duration_ns, SECOND_NS))
        return bytes(self._packed)


class ArrayMessages:
    """The bare numbers for a forward command controller, in the order of its joints."""

    takes_time = False

    def of(self, values: Rows, duration_ns: int) -> Float64MultiArray:
        """Return an array; a forward command controller steps there at once."""
        return Float64MultiArray(data=_doubles(values))


class JointStateMessages:
    """
    A joint state for drivers that take commands in that form.

    :param names: its joints
    :param field: ``position`` or ``velocity``
    :param now: returns the time of the node as a message
    """

    takes_time = False

    def __init__(self, names: Sequence[str], field: str, now: Callable[[], Any]) -> None:
        self._field, self._now = field, now
        self._message = JointState(name=list(names))

    def of(self, values: Rows, duration_ns: int) -> JointState:
        """Return a joint state with the present time."""
        self._message.header.stamp = self._now()
        setattr(self._message, self._field, _doubles(values))
        return self._message


MESSAGE_TYPES: dict[str, Any] = {
    'joint_trajectory': JointTrajectory,
    'float64_multi_array': Float64MultiArray,
    'joint_state': JointState,
}


def command_messages(
    kind: str, names: Sequence[str], interface: str, now: Callable[[], Any]
) -> CommandMessages:
    """
    Return what makes the messages of a command topic.

    :param kind: of MESSAGE_TYPES
    :param names: joints of the topic, in its order
    :param interface: ``position`` or ``velocity``
    :param now: returns the time of the node as a message
    """
    if kind == 'joint_trajectory':
        return TrajectoryMessages(names, {'position': 'positions'}.get(interface, 'velocities'))
    if kind == 'joint_state':
        return JointStateMessages(names, interface, now)
    return ArrayMessages()
