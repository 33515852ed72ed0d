# SPDX-License-Identifier: Apache-2.0
"""The rows executed of late: how far the robot was moved, and how rough its seams are."""

from collections import deque

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.action_queue import QueuedRow

MOTION_NS = 1_000_000_000


class MotionLog:
    """
    The last rows in the order of their execution.

    Not thread-safe: its owner locks.

    :param continuous: ``(num_joints,)`` bool, the joints whose steps count as jumps
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param memory_ns: how far back rows are kept, at least ``MOTION_NS`` [ns]
    """

    def __init__(
        self, continuous: npt.NDArray[np.bool_], keyframe_spacing_ns: int, memory_ns: int = 0
    ) -> None:
        kept = max(memory_ns, MOTION_NS) // keyframe_spacing_ns + 2
        self._continuous = continuous
        self._empty: Rows = np.zeros((0, len(continuous)), np.float32)
        self._rows: deque[Rows] = deque(maxlen=kept)
        self._motion_rows = MOTION_NS // keyframe_spacing_ns + 1
        self.handoff_jump = 0.0
        self.handoff_jump_max = 0.0

    def add(self, row: QueuedRow) -> None:
        """Take in a row that is executed now."""
        if row.is_seam and self._rows:
            before = self._rows[-1].astype(np.float64)
            steps = np.abs(row.values - before)[self._continuous]
            self.handoff_jump = float(steps.max(initial=0.0))
            self.handoff_jump_max = max(self.handoff_jump_max, self.handoff_jump)
        self._rows.append(row.values)

    def rows(self) -> Rows:
        """Return the rows kept, ``(n, num_joints)``, newest last."""
        return np.array(self._rows, np.float32) if self._rows else self._empty

    @property
    def motion(self) -> float:
        """Return the path of the joint that was moved most over the last second [rad; m]."""
        rows = self.rows()[-self._motion_rows :]
        return float(np.abs(np.diff(rows, axis=0)).sum(axis=0).max(initial=0.0))

    def clear(self) -> None:
        """Forget the rows of an episode that is over; the largest jump stays."""
        self._rows.clear()
