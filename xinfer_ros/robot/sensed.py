# SPDX-License-Identifier: Apache-2.0
"""What a robot measures of itself."""

from dataclasses import dataclass

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
