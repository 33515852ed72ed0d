# SPDX-License-Identifier: Apache-2.0
"""A register of robots that tells who comes and who goes."""

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.engine.observer import ServerObserver
from xinfer_ros.engine.robots import Registration, Robot, RobotRegister
from xinfer_ros.errors import Rejected


class ToldRegister(RobotRegister):
    """
    Grants sessions, and tells an observer.

    :param max_robots: most robots at once
    :param lease_ns: silence after which an id is free [ns]
    :param observer: is told
    """

    def __init__(self, max_robots: int, lease_ns: int, observer: ServerObserver) -> None:
        super().__init__(max_robots, lease_ns)
        self._observer = observer

    def register(
        self, registration: Registration, contract: ModelContract, now_ns: int
    ) -> tuple[Robot, Robot | None]:
        """Register a robot or renew its lease; see ``RobotRegister``."""
        try:
            robot, replaced = super().register(registration, contract, now_ns)
        except Rejected as refusal:
            self._observer.not_registered(registration.robot_id, refusal, now_ns)
            raise
        if replaced is not None:
            self._observer.left(replaced, now_ns)
        self._observer.joined(robot, contract, now_ns)
        return robot, replaced

    def silent(self, now_ns: int) -> list[Robot]:
        """Remove and return the robots whose lease is over."""
        gone = super().silent(now_ns)
        for robot in gone:
            self._observer.left(robot, now_ns)
        return gone
