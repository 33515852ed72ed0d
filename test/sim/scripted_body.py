# SPDX-License-Identifier: Apache-2.0
"""A body and a source of chunks that tell what they were asked, for closed loops."""

from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.sim.closed_loop import Tie

MS = 1_000_000
TICK_NS = 20 * MS
HORIZON = 20


def settings(**changes: Any) -> ExecutorSettings:
    """Return settings with ``d`` fixed to 4 rows and a request every 100 ms."""
    return ExecutorSettings(
        **{
            'robot_id': 'r0',
            'joint_names': ('a', 'b'),
            'keyframe_spacing_ns': TICK_NS,
            'minimum_period_ns': 100 * MS,
            'backoff_ns': 100 * MS,
            'commitment_steps': 4,
            'budget_ns': 1000 * MS,
            **changes,
        }
    )


class CountingBody:
    """Its second joint counts the ticks that it has obeyed; done after some."""

    def __init__(self, done_after: int = 10**9) -> None:
        self._done_after = done_after
        self.obeyed: list[Rows] = []

    def state(self) -> Rows:
        """Return ``(0, ticks)``."""
        return np.array([0.0, len(self.obeyed)], np.float32)

    def view(self) -> int:
        """Return the ticks so far."""
        return len(self.obeyed)

    def apply(self, command: Rows) -> None:
        """Remember a command."""
        self.obeyed.append(command)

    def is_done(self) -> bool:
        """Return whether enough ticks are over."""
        return len(self.obeyed) >= self._done_after


class NumberedSource:
    """Column 0 of its rows is their step, column 1 the number of the chunk; frozen ones repeat."""

    def __init__(self) -> None:
        self.views: list[int] = []
        self.ties: list[Tie] = []

    def chunk(self, view: int, tie: Tie) -> Rows:
        """Return rows ``(HORIZON, 2)``."""
        self.views.append(view)
        self.ties.append(tie)
        rows = np.full((HORIZON, 2), len(self.views), np.float32)
        rows[:, 0] = np.arange(tie.executed_steps, tie.executed_steps + HORIZON)
        rows[: tie.frozen_steps] = tie.leftover[: tie.frozen_steps]
        return rows
