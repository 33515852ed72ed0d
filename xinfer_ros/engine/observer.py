# SPDX-License-Identifier: Apache-2.0
"""Who is told what happens at the front end; nothing depends on it."""

from typing import Protocol

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.records import Beat
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.errors import Rejected


class ServerObserver(Protocol):
    """
    Hears of robots, requests and beats.

    Every method may be called from any thread, returns within microseconds and never raises. All
    times are on the server's monotonic clock [ns].
    """

    def joined(self, robot: Robot, contract: ModelContract, now_ns: int) -> None:
        """Take in that a robot has registered, or renewed its lease."""
        ...

    def left(self, robot: Robot, now_ns: int) -> None:
        """Take in that its registration is over."""
        ...

    def not_registered(self, robot_id: str, refusal: Rejected, now_ns: int) -> None:
        """Take in that somebody was refused at registration."""
        ...

    def arrived(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
        """Take in an observation, before it is known whether it is refused."""
        ...

    def answered(
        self, robot: Robot, observation: Observation, answer: Answer, arrival_ns: int
    ) -> None:
        """
        Take in the one answer to an observation, right before it is published.

        :param observation: with the budget that was in force in the end
        :param answer: its ``times.server_ns`` tells when that is
        """
        ...

    def engine_told(self, epoch: int, record: Beat | Timeline, now_ns: int) -> None:
        """Take in what the engine of this epoch tells of itself; lanes while it is watched."""
        ...

    def engine_ended(self, now_ns: int) -> None:
        """Take in that an engine has ended, though nobody had asked it to; a new one starts."""
        ...


class NoObserver:
    """Hears of everything and does nothing with it."""

    def joined(self, robot: Robot, contract: ModelContract, now_ns: int) -> None:
        """Do nothing."""

    def left(self, robot: Robot, now_ns: int) -> None:
        """Do nothing."""

    def not_registered(self, robot_id: str, refusal: Rejected, now_ns: int) -> None:
        """Do nothing."""

    def arrived(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
        """Do nothing."""

    def answered(
        self, robot: Robot, observation: Observation, answer: Answer, arrival_ns: int
    ) -> None:
        """Do nothing."""

    def engine_told(self, epoch: int, record: Beat | Timeline, now_ns: int) -> None:
        """Do nothing."""

    def engine_ended(self, now_ns: int) -> None:
        """Do nothing."""
