# SPDX-License-Identifier: Apache-2.0
"""What a chunk must be before a row of it is queued."""

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Answer, Rows, check_rows, columns_by_name
from xinfer_ros.errors import Reason, Rejected


class ChunkIngress:
    """
    Brings the rows of a chunk into the robot's order, or refuses them whole.

    Not thread-safe: its owner locks.

    :param joint_names: the robot's joints in its own order
    :param keyframe_spacing_ns: spacing of rows that it plays, Delta [ns]
    """

    def __init__(self, joint_names: tuple[str, ...], keyframe_spacing_ns: int) -> None:
        self._joint_names, self._keyframe_spacing_ns = joint_names, keyframe_spacing_ns
        self._columns: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}  # of the last order

    def rows(self, answer: Answer) -> Rows:
        """
        Return the rows of an answer, ``(H, num_joints)`` float32, a copy.

        :raises Rejected: REJECTED_ROWS, REJECTED_COLUMNS or REJECTED_SPACING
        """
        check_rows(answer.rows, len(answer.joint_names))
        columns = self._columns.get(answer.joint_names)
        if columns is None:
            columns = columns_by_name(self._joint_names, answer.joint_names)
            self._columns = {answer.joint_names: columns}
        if answer.keyframe_spacing_ns != self._keyframe_spacing_ns:
            raise Rejected(
                Reason.REJECTED_SPACING,
                f'rows are {answer.keyframe_spacing_ns} ns apart, '
                f'this robot plays one every {self._keyframe_spacing_ns} ns',
            )
        return answer.rows[:, columns]
