# SPDX-License-Identifier: Apache-2.0
"""What a robot measures of itself."""

from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.chunk import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensed:
    """
    The joints at the instant of a request, in the robot's order.

    :param state: ``(num_joints,)`` positions float32
    :param effort: ``(num_joints,)`` float32 [N m; N], None if they are not measured
    """

    state: Rows
    effort: Rows | None = None

    def rest(self, rows_are_velocities: bool) -> Rows:
        """Return the row, ``(num_joints,)``, that would keep the robot where it is."""
        return np.zeros_like(self.state) if rows_are_velocities else self.state
