# SPDX-License-Identifier: Apache-2.0
"""The robots that the server knows: sessions, leases and what each agreed to."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.metrics import ClockSkew
from xinfer_ros.errors import Reason, Rejected

PROTOCOL_VERSION = 3
ROBOT_ID = re.compile(r'[A-Za-z][A-Za-z0-9_]{0,63}')
_LONG_AGO_NS = -(2**62)  # longer than any lease before every instant
NAMESPACE = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]{0,63}){1,8}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """
    What a robot says of itself; fields as in srv/RegisterRobot.srv.

    :param namespace: its topics stand in it; empty behind a door that has none
    :param cameras: names of its cameras
    :param door: how it reaches the server
    """

    robot_id: str
    namespace: str
    joint_names: tuple[str, ...]
    cameras: tuple[str, ...]
    keyframe_spacing_ns: int
    horizon: int
    protocol_version: int
    instance: int
    door: Literal['ros', 'websocket'] = 'ros'


@dataclass(slots=True, kw_only=True, eq=False)
class Robot:
    """
    A registered robot.

    :param number: small, from 0; no other registered robot has it
    :param registration: what it said of itself
    :param session: its nonce
    :param seen_ns: last sign of life, server's monotonic clock [ns]
    :param to_model: ``(action_dim,)`` column of the robot's order for each joint of the contract
    :param to_robot: the inverse
    :param last_request_id: largest request id received in this session
    :param clock_skew: of its wall clock against the server's, for people to see
    """

    number: int
    registration: Registration
    session: int
    seen_ns: int
    to_model: npt.NDArray[np.intp]
    to_robot: npt.NDArray[np.intp]
    last_request_id: int = 0
    duplicates_refused: int = 0
    clock_skew: ClockSkew = field(default_factory=ClockSkew)

    def leave(self) -> None:
        """Take in that it has gone: its lease is over, and its id is free at once."""
        self.seen_ns = _LONG_AGO_NS


def check_registration(registration: Registration, contract: ModelContract) -> None:
    """
    Refuse a robot that the model can't serve.

    :raises Rejected: says what was received and what is expected
    """
    if registration.protocol_version != PROTOCOL_VERSION:
        raise Rejected(
            Reason.REJECTED_PROTOCOL,
            f'the robot speaks protocol {registration.protocol_version}, this server '
            f'{PROTOCOL_VERSION}; install the same version of xinfer_ros on both',
        )
    if not ROBOT_ID.fullmatch(registration.robot_id):
        raise Rejected(
            Reason.REJECTED_NAME,
            f'robot id {registration.robot_id!r}: a letter, then letters, digits or _, at most 64',
        )
    space = registration.namespace
    has_topics = registration.door == 'ros'
    if (has_topics or space) and (not NAMESPACE.fullmatch(space) or len(space) > 200):
        raise Rejected(
            Reason.REJECTED_NAME,
            f'namespace {space!r}: a robot needs one of its own, such as /r1, '
            'of at most 200 characters',
        )
    joints = registration.joint_names
    if len(set(joints)) != len(joints) or set(joints) != set(contract.joint_names):
        raise Rejected(
            Reason.REJECTED_JOINTS,
            f'joint names differ: expected {", ".join(contract.joint_names)}; '
            f'received {", ".join(joints) or "none"}; if they are the same joints, '
            'model_joint_names of the executor says what the model calls them',
        )
    missing = [c.name for c in contract.cameras if c.name not in registration.cameras]
    if missing:
        raise Rejected(
            Reason.REJECTED_CAMERAS,
            f'{contract.name} needs the cameras {", ".join(missing)}; '
            f'received {", ".join(registration.cameras) or "none"}',
        )
    if registration.horizon > contract.horizon:
        raise Rejected(
            Reason.REJECTED_HORIZON,
            f'{registration.horizon} rows wanted, {contract.name} gives {contract.horizon}',
        )
    if not 1_000_000 <= registration.keyframe_spacing_ns <= 10_000_000_000:
        raise Rejected(
            Reason.REJECTED_SPACING,
            f'keyframe spacing of {registration.keyframe_spacing_ns} ns; 1 ms to 10 s are allowed',
        )


class RobotRegister:
    """
    Grants sessions; an id belongs to one robot until it has been silent for a lease.

    Not thread-safe: its owner locks.

    :param max_robots: most robots at once
    :param lease_ns: silence after which an id is free [ns]
    """

    def __init__(self, max_robots: int, lease_ns: int) -> None:
        self._max_robots, self.lease_ns = max_robots, lease_ns
        self._robots: dict[str, Robot] = {}

    def __len__(self) -> int:
        """Return the number of registered robots."""
        return len(self._robots)

    def register(
        self, registration: Registration, contract: ModelContract, now_ns: int
    ) -> tuple[Robot, Robot | None]:
        """
        Register a robot or renew its lease.

        :returns: the robot, and the silent one of the same id whose place it took
        :raises Rejected: DUPLICATE_ID, REJECTED_FLEET_FULL, or what ``check_registration`` found
        """
        check_registration(registration, contract)
        known = self._robots.get(registration.robot_id)
        if known is not None:
            if known.registration == registration:
                known.seen_ns = now_ns
                return known, None
            silent_ns = now_ns - known.seen_ns
            is_other = known.registration.instance != registration.instance
            if is_other and silent_ns <= self.lease_ns:
                known.duplicates_refused += 1
                raise Rejected(
                    Reason.DUPLICATE_ID,
                    f'{registration.robot_id} is registered {_origin(known)} '
                    f'and was heard {silent_ns / 1e9:.1f} s ago; give each robot its own id, or '
                    f'wait until it has been silent for {self.lease_ns / 1e9:g} s',
                )
        self._check_namespace(registration, now_ns)
        if known is None and len(self._robots) >= self._max_robots:
            raise Rejected(
                Reason.REJECTED_FLEET_FULL,
                f'{len(self._robots)} robots are served, max_robots is {self._max_robots}',
            )
        robot = self._new(registration, contract, now_ns)
        self._robots[registration.robot_id] = robot
        return robot, known

    def _check_namespace(self, registration: Registration, now_ns: int) -> None:
        for other in self._robots.values():
            is_other = other.registration.robot_id != registration.robot_id
            shares = other.registration.namespace == registration.namespace != ''
            if is_other and shares and now_ns - other.seen_ns <= self.lease_ns:
                raise Rejected(
                    Reason.DUPLICATE_ID,
                    f'{registration.namespace} belongs to {other.registration.robot_id}, which '
                    'was heard lately; give each robot a namespace of its own',
                )

    def _new(self, registration: Registration, contract: ModelContract, now_ns: int) -> Robot:
        taken = {robot.number for robot in self._robots.values()}
        given, model = registration.joint_names, contract.joint_names
        return Robot(
            number=min(set(range(len(taken) + 1)) - taken),
            registration=registration,
            session=secrets.randbits(63) | 1,
            seen_ns=now_ns,
            to_model=_positions(model, given),
            to_robot=_positions(given, model),
        )

    def silent(self, now_ns: int) -> list[Robot]:
        """Remove and return the robots whose lease is over."""
        gone = [r for r in self._robots.values() if now_ns - r.seen_ns > self.lease_ns]
        for robot in gone:
            del self._robots[robot.registration.robot_id]
        return gone

    def all(self) -> list[Robot]:
        """Return every registered robot."""
        return list(self._robots.values())

    def is_current(self, robot: Robot) -> bool:
        """Return whether this registration is still in force."""
        return self._robots.get(robot.registration.robot_id) is robot


def _origin(robot: Robot) -> str:
    """Return where a robot has registered from, in words."""
    if robot.registration.door == 'websocket':
        return 'over a websocket'
    return f'from {robot.registration.namespace}'


def _positions(wanted: Sequence[str], given: Sequence[str]) -> npt.NDArray[np.intp]:
    return np.array([given.index(name) for name in wanted], dtype=np.intp)
