# SPDX-License-Identifier: Apache-2.0
"""The rows executed of late: how far the robot was moved, and how rough its seams are."""

from collections import deque

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.robot.action_queue import QueuedRow

MOTION_NS = 1_000_000_000


class MotionLog:
    """
    The last rows in the order of their execution.

    Not thread-safe: its owner locks.

    :param continuous: ``(num_joints,)`` bool, the joints whose steps count as jumps
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param rows_are_speeds: and not positions
    """

    def __init__(
        self,
        continuous: npt.NDArray[np.bool_],
        keyframe_spacing_ns: int,
        rows_are_speeds: bool = False,
    ) -> None:
        self._continuous = continuous
        self._spacing_s, self._rows_are_speeds = keyframe_spacing_ns * 1e-9, rows_are_speeds
        self._empty: Rows = np.zeros((0, len(continuous)), np.float32)
        self._rows: deque[Rows] = deque(maxlen=MOTION_NS // keyframe_spacing_ns + 1)
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

    def hold(self) -> None:
        """Take in a tick without a row: the robot stays where it is."""
        if self._rows:
            last = self._rows[-1]
            self._rows.append(np.zeros_like(last) if self._rows_are_speeds else last)

    def lead(self, values: Rows) -> None:
        """Let the tick that was taken in last be one that moved the robot, ``(num_joints,)``."""
        if self._rows:
            self._rows.pop()
        self._rows.append(values)

    def rows(self) -> Rows:
        """Return the rows kept, ``(n, num_joints)``, newest last."""
        return np.array(self._rows, np.float32) if self._rows else self._empty

    @property
    def motion(self) -> float:
        """Return the path of the joint that was moved most over the last second [rad; m]."""
        rows = self.rows()
        moved = rows[1:] * self._spacing_s if self._rows_are_speeds else np.diff(rows, axis=0)
        return float(np.abs(moved).sum(axis=0).max(initial=0.0))

    def fill(self, report: RobotReport) -> None:
        """Write what is known here into a report."""
        report.handoff_jump, report.handoff_jump_max = self.handoff_jump, self.handoff_jump_max
        report.motion = self.motion

    def clear(self) -> None:
        """Forget the rows of an episode that is over; the largest jump stays."""
        self._rows.clear()
