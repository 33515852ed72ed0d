# SPDX-License-Identifier: Apache-2.0
"""A system under load: what the benchmark asks of ours, and of the peers beside it."""

from pathlib import Path
from typing import Protocol

from xinfer_ros.errors import XinferError
from xinfer_ros.robot.load_plan import Images


class BenchFailedError(XinferError):
    """A run could not be carried to its end."""


class BenchSystem(Protocol):
    """
    A server that robots can be let loose on.

    The load comes from processes that read a ``robot.load_plan.LoadPlan``, speak
    ``robot.load_signals`` on stdin and stdout, drive a ``robot.emulated_fleet.EmulatedFleet`` and
    save a ``robot.request_log.RequestLog``: whatever the wire, the robots are the same.
    """

    @property
    def name(self) -> str:
        """Return its name in tables."""
        ...

    @property
    def images(self) -> Images:
        """Return how pictures are sent to it."""
        ...

    def start(self) -> None:
        """
        Start it and wait until it serves.

        :raises BenchFailedError: if it does not
        """
        ...

    def pids(self) -> tuple[int, ...]:
        """Return its processes, none if they are not of this machine."""
        ...

    def load_command(self, plan: Path) -> list[str]:
        """Return the command line of a process that plays a plan to it."""
        ...

    def check(self) -> str | None:
        """Return what is wrong if it has ended, None otherwise."""
        ...

    def close(self) -> None:
        """End it."""
        ...
