# SPDX-License-Identifier: Apache-2.0
"""The rows that a robot has still to execute, and the one rule by which a new chunk takes over."""

import threading
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import Reason, Rejected


def handoff_row(start_step: int, num_rows: int, executed_steps: int) -> int:
    """
    Return the row of a new chunk that is executed first.

    :param start_step: executed steps at the observation that the chunk answers [steps]
    :param num_rows: rows of the chunk, ``H`` [steps]
    :param executed_steps: rows this robot has consumed so far [steps]
    :returns: row of the chunk, 0-based, ``executed_steps - start_step``
    :raises Rejected: STALE_CHUNK if every row has been consumed already, or if the chunk starts
        in the future, which no observation of this robot can have asked for
    Source: real-time chunking, handoff by consumed rows; time never enters.
    """
    row = executed_steps - start_step
    if not 0 <= row < num_rows:
        raise Rejected(
            Reason.STALE_CHUNK,
            f'the chunk covers steps {start_step} to {start_step + num_rows - 1}, '
            f'but step {executed_steps} is next',
        )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRow:
    """
    One row taken from the queue.

    :param step: its index since the executor began, strictly rising by one [steps]
    :param values: ``(num_joints,)`` float32
    """

    step: int
    values: Rows


class ActionQueue:
    """
    Rows to be executed, oldest first; each row is taken exactly once and none is skipped twice.

    Linearisable: ``pop``, ``merge``, ``snapshot`` and ``clear`` may be called from any thread.

    :param num_joints: width of a row
    """

    def __init__(self, num_joints: int) -> None:
        self._lock = threading.Lock()
        self._empty: Rows = np.zeros((0, num_joints), np.float32)
        self._rows = self._empty
        self._next = 0
        self._executed_steps = 0

    def pop(self) -> QueuedRow | None:
        """Take the next row; None, and no step is counted, if there is none."""
        with self._lock:
            if self._next >= len(self._rows):
                return None
            row = QueuedRow(step=self._executed_steps, values=self._rows[self._next])
            self._next += 1
            self._executed_steps += 1
            return row

    def merge(self, start_step: int, rows: Rows) -> int:
        """
        Let a new chunk take over: the old one's rest is dropped, consumed rows are skipped.

        :param start_step: executed steps at the observation that the chunk answers [steps]
        :param rows: ``(H, num_joints)`` float32; not copied, must not be written to afterwards
        :returns: the row of the chunk that is executed first
        :raises Rejected: STALE_CHUNK, and the queue stays as it was
        """
        with self._lock:
            row = handoff_row(start_step, len(rows), self._executed_steps)
            self._rows = rows
            self._next = row
            return row

    def snapshot(self) -> tuple[int, Rows]:
        """Return the executed steps and the leftover, ``(queued, num_joints)``, of one instant."""
        with self._lock:
            return self._executed_steps, self._rows[self._next :].copy()

    def clear(self) -> None:
        """Forget every queued row, as a new episode demands; executed steps go on."""
        with self._lock:
            self._rows = self._empty
            self._next = 0

    @property
    def executed_steps(self) -> int:
        """Return the rows taken so far [steps]."""
        with self._lock:
            return self._executed_steps

    def __len__(self) -> int:
        """Return the number of queued rows [steps]."""
        with self._lock:
            return len(self._rows) - self._next
