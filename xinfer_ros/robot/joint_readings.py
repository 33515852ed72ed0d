# SPDX-License-Identifier: Apache-2.0
"""The newest joint readings of a robot, however many drivers publish them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.sensed import Sensed


@dataclass(frozen=True, slots=True, kw_only=True)
class JointReading:
    """
    What one driver has said last.

    :param names: its joints
    :param position: one a joint
    :param effort: one a joint, or none
    :param arrival_ns: steady clock [ns]
    """

    names: tuple[str, ...]
    position: Sequence[float]
    effort: Sequence[float]
    arrival_ns: int


class JointReadings:
    """
    Joins the readings of drivers that each know some joints; belongs to one thread.

    :param timeout_ns: age at which a reading is too old [ns]
    """

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._newest: dict[tuple[str, ...], JointReading] = {}

    @property
    def first_names(self) -> tuple[str, ...]:
        """Return the joints of the driver that spoke first, none before."""
        return next(iter(self._newest), ())

    @property
    def num_drivers(self) -> int:
        """Return how many drivers have spoken."""
        return len(self._newest)

    def add(self, reading: JointReading) -> None:
        """Take in a reading; one that lacks positions is left out."""
        if reading.names and len(reading.position) == len(reading.names):
            self._newest[reading.names] = reading

    def heard(self, now_ns: int) -> None:
        """Note that the only driver has spoken again [ns]; what it said is added when needed."""
        for names, reading in self._newest.items():
            self._newest[names] = replace(reading, arrival_ns=now_ns)

    def forget(self) -> None:
        """Drop what was read so far."""
        self._newest.clear()

    def trouble(self, joint_names: tuple[str, ...], now_ns: int) -> str:
        """Return which joints have gone silent; nothing while all are heard, or before that."""
        silent = [
            name
            for reading in self._newest.values()
            if now_ns - reading.arrival_ns > self._timeout_ns
            for name in reading.names
            if name in joint_names and self._is_newest(reading, name)
        ]
        if not silent:
            return ''
        which = '' if len(silent) == len(joint_names) else f' of {", ".join(silent)}'
        return f'joint states{which} silent for more than {self._timeout_ns / 1e9:g} s'

    def _is_newest(self, reading: JointReading, name: str) -> bool:
        return not any(
            name in other.names and other.arrival_ns > reading.arrival_ns
            for other in self._newest.values()
        )

    def sensed(self, joint_names: tuple[str, ...], now_ns: int) -> Sensed:
        """
        Return the joints in an order; efforts only if every joint has one.

        :raises Rejected: REJECTED_STATE names what is missing, not finite or silent
        """
        if not self._newest:
            raise Rejected(Reason.REJECTED_STATE, 'no message of joint states yet')
        position: dict[str, float] = {}
        effort: dict[str, float] = {}
        for reading in sorted(self._newest.values(), key=lambda reading: reading.arrival_ns):
            position.update(zip(reading.names, reading.position, strict=True))
            if len(reading.effort) == len(reading.names):
                effort.update(zip(reading.names, reading.effort, strict=True))
        missing = [name for name in joint_names if name not in position]
        if missing:
            raise Rejected(Reason.REJECTED_STATE, f'the joint states lack {", ".join(missing)}')
        broken = [name for name in joint_names if not math.isfinite(position[name])]
        if broken:
            raise Rejected(
                Reason.REJECTED_STATE,
                f'the joint states have {position[broken[0]]} for {", ".join(broken)}; '
                'finite positions are needed',
            )
        if trouble := self.trouble(joint_names, now_ns):
            raise Rejected(Reason.REJECTED_STATE, trouble)
        has_effort = all(name in effort for name in joint_names)
        return Sensed(
            state=np.array([position[name] for name in joint_names], np.float32),
            effort=np.array([effort[name] for name in joint_names], np.float32)
            if has_effort
            else None,
        )
