# SPDX-License-Identifier: Apache-2.0
"""The action queue of a robot in robot time."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """
    What an observation tells of the queue.

    :param executed: rows executed since the session began
    :param left: rows that may still be executed
    """

    executed: int
    left: int


class VirtualRows:
    """
    Rows that are good, and chunks and observations on their way.

    :param execution_steps: rows that a chunk is good for, from where its observation was
    """

    def __init__(self, execution_steps: int) -> None:
        self.execution_steps = execution_steps
        self.ticks = self.starved = 0
        self._executed = self._good = 0
        self._seen = 0  # executed at the newest observation that the server has
        self._start = 0  # of the chunk that is computed
        self._sights: deque[Sight] = deque()
        self._chunks: deque[int] = deque()  # where they start

    def tick(self, *, is_counted: bool) -> None:
        """Execute a row if there is one."""
        has_row = self._executed < self._good
        self._executed += has_row
        if is_counted:
            self.ticks += 1
            self.starved += not has_row
        self._sights.append(Sight(executed=self._executed, left=self._good - self._executed))

    def arrive(self) -> Sight:
        """Let the oldest observation that is on its way reach the server."""
        sight = self._sights.popleft()
        self._seen = sight.executed
        return sight

    def compute(self) -> None:
        """Let a chunk be computed from the newest observation that has arrived."""
        self._start = self._seen

    def leave(self) -> None:
        """Let the chunk leave the server."""
        self._chunks.append(self._start)

    def take(self) -> None:
        """Let the oldest chunk that is on its way reach the robot."""
        self._good = max(self._good, self._chunks.popleft() + self.execution_steps)
