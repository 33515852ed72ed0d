# SPDX-License-Identifier: Apache-2.0
"""The joint messages of one topic, collected as series."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.episode import Series
from xinfer_ros.episodes.ros_types import FLOAT_ARRAY, JOINT_STATE, JOINT_TRAJECTORY, RosTypes

Values = npt.NDArray[np.float64]


def _nothing() -> Values:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joints:
    """What one message says; an empty array where it says nothing."""

    names: tuple[str, ...]
    position: Values
    velocity: Values = field(default_factory=_nothing)
    effort: Values = field(default_factory=_nothing)

    def ordered(self, names: tuple[str, ...]) -> '_Joints | None':
        """Return the same in another order of names, None if one is not there."""
        if not self.names or self.names == names:
            return self
        if not set(names) <= set(self.names):
            return None
        order = [self.names.index(name) for name in names]
        parts = (self.position, self.velocity, self.effort)
        position, velocity, effort = (
            p[order] if len(p) == len(self.names) else _nothing() for p in parts
        )
        return _Joints(names=names, position=position, velocity=velocity, effort=effort)


class JointMessages:
    """
    Collects the joints of one topic: ``JointState``, ``JointTrajectory`` or ``Float64MultiArray``.

    Of a trajectory its first point counts. An array names no joints and is taken in their order.

    :param topic: its name, empty if there is none
    :param type_name: type of its messages
    :param types: message types
    """

    def __init__(self, topic: str, type_name: str, types: RosTypes) -> None:
        self.topic, self._type_name, self._types = topic, type_name, types
        self.joints: tuple[str, ...] = ()
        self._times_ns: list[int] = []
        self._positions: list[Values] = []
        self._velocities: list[Values] = []
        self._efforts: list[Values] = []
        self._refused = 0

    @property
    def warnings(self) -> Sequence[str]:
        """Return what was left out."""
        if not self._refused:
            return ()
        return (f'{self.topic}: {self._refused} messages with other joints are left out',)

    def take(self, offset_ns: int, data: bytes) -> None:
        """Take in a message."""
        told = self._read(data)
        if not self.joints and told.names:
            self.joints = told.names
        width = len(self.joints) or (len(self._positions[0]) if self._positions else -1)
        joints = told.ordered(self.joints)
        if joints is None or not len(joints.position) or width not in (-1, len(joints.position)):
            self._refused += 1
            return
        unknown = np.full(len(joints.position), np.nan)
        self._times_ns.append(offset_ns)
        self._positions.append(joints.position)
        self._velocities.append(joints.velocity if len(joints.velocity) else unknown)
        self._efforts.append(joints.effort if len(joints.effort) else unknown)

    def positions(self, joints: Sequence[str]) -> Series | None:
        """Return the positions in an order of joints, None if there are none."""
        return self._series(self._positions, joints)

    def velocities(self, joints: Sequence[str]) -> Series | None:
        """Return the velocities in an order of joints, None if there are none."""
        return self._series(self._velocities, joints)

    def efforts(self, joints: Sequence[str]) -> Series | None:
        """Return the efforts in an order of joints, None if there are none."""
        return self._series(self._efforts, joints)

    def _read(self, data: bytes) -> _Joints:
        message = self._types.parsed(data, self._type_name)
        if self._type_name == JOINT_STATE:
            return _Joints(
                names=tuple(message.name),
                position=message.position,
                velocity=message.velocity,
                effort=message.effort,
            )
        if self._type_name == JOINT_TRAJECTORY:
            position = message.points[0].positions if message.points else _nothing()
            return _Joints(names=tuple(message.joint_names), position=position)
        assert self._type_name == FLOAT_ARRAY
        return _Joints(names=(), position=np.asarray(message.data, np.float64))

    def _series(self, rows: list[Values], joints: Sequence[str]) -> Series | None:
        if not rows or np.all(np.isnan(rows[0])):
            return None
        found = np.array(rows, np.float64)
        if self.joints and tuple(joints) != self.joints:
            values = np.full((len(found), len(joints)), np.nan)
            for column, name in enumerate(self.joints):
                if name in joints:
                    values[:, list(joints).index(name)] = found[:, column]
            found = values
        if found.shape[1] != len(joints):
            self._refused += len(rows)
            return None
        return Series(times_ns=np.array(self._times_ns, np.int64), values=found)
