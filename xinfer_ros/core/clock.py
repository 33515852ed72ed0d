# SPDX-License-Identifier: Apache-2.0
"""The one source of time: integer nanoseconds of a monotonic clock."""

import datetime
import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock; its zero is arbitrary, so only differences mean something."""

    def now_ns(self) -> int:
        """Return the present time [ns]."""
        ...


class MonotonicClock:
    """The steady clock of this machine; jumps of the wall clock do not reach it."""

    def now_ns(self) -> int:
        """Return the present time [ns]."""
        return time.monotonic_ns()


def today() -> str:
    """Return the day, as 2026-01-31: a label on files, never compared with anything."""
    return datetime.date.today().isoformat()


class SimulatedClock:
    """
    A clock that moves only when told to.

    :param now_ns: where it starts [ns]
    """

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """Return the present time [ns]."""
        return self._now_ns

    def advance(self, duration_ns: int) -> None:
        """
        Move the clock forward.

        :param duration_ns: by how much, not negative [ns]
        :raises ValueError: if the clock would run backwards
        """
        if duration_ns < 0:
            raise ValueError(f'a clock cannot be moved by {duration_ns} ns: it only runs forward')
        self._now_ns += duration_ns
