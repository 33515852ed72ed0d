# SPDX-License-Identifier: Apache-2.0
"""Brings each answer to the door that its robot came in by."""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from xinfer_ros.core.chunk import Answer
from xinfer_ros.engine.robots import Robot


class Outlet(Protocol):
    """The way back to one robot."""

    def publish(self, answer: Answer) -> None:
        """Send an answer; called in the thread that answers, so it must not wait."""
        ...

    def close(self) -> None:
        """Take in that the robot is no longer registered."""
        ...


class Door(Protocol):
    """A way in; open until it is closed."""

    def close(self) -> None:
        """End it and its connections; called when the front end has been closed."""
        ...


class AnswerRouter:
    """Knows the way back to every robot; thread-safe, an answer to whoever has gone is dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outlets: dict[Robot, Outlet] = {}

    def join(self, robot: Robot, outlet: Outlet) -> None:
        """Send the answers of a registered robot there from now on."""
        with self._lock:
            self._outlets[robot] = outlet

    def knows(self, robot: Robot) -> bool:
        """Return whether there is a way to a robot."""
        with self._lock:
            return robot in self._outlets

    def leave(self, robot: Robot) -> None:
        """Forget the way to a robot, if it is known."""
        with self._lock:
            outlet = self._outlets.pop(robot, None)
        if outlet is not None:
            outlet.close()

    def sweep(self, registered: Callable[[], Iterable[Robot]]) -> None:
        """
        Forget whoever is no longer registered, whichever door it came in by.

        :param registered: returns those who are
        """
        with self._lock:
            known = set(self._outlets)  # first: who joins meanwhile is in neither
        for robot in known.difference(registered()):
            self.leave(robot)

    def outlets(self) -> list[Outlet]:
        """Return the way to each robot."""
        with self._lock:
            return list(self._outlets.values())

    def __call__(self, robot: Robot, answer: Answer) -> None:
        """Hand an answer over."""
        with self._lock:
            outlet = self._outlets.get(robot)
        if outlet is not None:
            outlet.publish(answer)
