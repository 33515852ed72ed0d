# SPDX-License-Identifier: Apache-2.0
"""The rows that a robot has still to execute, and the one way in which a new chunk takes over."""

import threading
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.merge_rule import MergeRule, Replacement

MAX_QUEUED_STEPS = 4096


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

    :param step: its index since the executor began, strictly rising [steps]
    :param values: ``(num_joints,)`` float32
    :param is_seam: whether it is the first one of a chunk that has taken over
    :param skipped_steps: rows before it that were left out [steps]
    """

    step: int
    values: Rows
    is_seam: bool = False
    skipped_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """
    How a chunk took over.

    :param row: of the chunk, the one that is executed first
    :param replaced: ``(queued, num_joints)``, the leftover in whose place it came
    """

    row: int
    replaced: Rows


class ActionQueue:
    """
    Rows to be executed, oldest first; each row is taken exactly once and none is skipped twice.

    Linearisable: its methods may be called from any thread. A chunk that is refused changes
    nothing.

    :param num_joints: width of a row
    :param rule: what is played of a new chunk and older ones
    :param limits: what every row to be played, and the step to the first one, must keep
    :param keyframe_spacing_ns: spacing of rows, Delta; for the limits [ns]
    """

    def __init__(
        self,
        num_joints: int,
        rule: MergeRule | None = None,
        limits: RowLimits | None = None,
        keyframe_spacing_ns: int = 1,
    ) -> None:
        self._lock = threading.Lock()
        self._rule = rule if rule is not None else Replacement()
        self._limits, self._keyframe_spacing_ns = limits, keyframe_spacing_ns
        self._empty: Rows = np.zeros((0, num_joints), np.float32)
        self._rows = self._empty
        self._next = 0
        self._executed_steps = 0
        self._is_seam = False
        self._before: Rows | None = None  # from where the next row starts

    def pop(self, skip_steps: int = 0) -> QueuedRow | None:
        """
        Take the next row; None, and no step is counted, if there is none.

        :param skip_steps: rows to leave out before it, fewer if the step over them would be too
            wide; they count as consumed, and the last queued row is never left out [steps]
        """
        with self._lock:
            queued = len(self._rows) - self._next
            if queued == 0:
                return None
            skipped = self._skippable(min(skip_steps, queued - 1))
            self._next += skipped
            self._executed_steps += skipped
            row = QueuedRow(
                step=self._executed_steps,
                values=self._rows[self._next],
                is_seam=self._is_seam,
                skipped_steps=skipped,
            )
            self._next += 1
            self._executed_steps += 1
            self._is_seam, self._before = False, row.values
            return row

    def _skippable(self, most_steps: int) -> int:
        """Return how many rows may be left out: a late tick is no reason for a wide step."""
        limits, before = self._limits, self._before
        if limits is None or before is None:
            return most_steps
        while most_steps and not limits.allow_step(before, self._rows[self._next + most_steps]):
            most_steps -= 1
        return most_steps

    def merge(self, start_step: int, rows: Rows, at_rest: Rows | None = None) -> Handoff:
        """
        Let a new chunk take over at the next row; consumed rows are left out.

        :param start_step: executed steps at the observation that the chunk answers [steps]
        :param rows: ``(H, num_joints)`` float32; not copied, must not be written to afterwards
        :param at_rest: ``(num_joints,)`` as measured with the observation: from where a robot
            without rows starts that has executed none since, if limits are to be kept
        :raises Rejected: STALE_CHUNK, REJECTED_ROWS or REJECTED_LIMITS; the queue stays as it was
        """
        if len(rows) > MAX_QUEUED_STEPS:
            raise Rejected(
                Reason.REJECTED_ROWS, f'{len(rows)} rows; a queue holds {MAX_QUEUED_STEPS}'
            )
        with self._lock:
            row = handoff_row(start_step, len(rows), self._executed_steps)
            replaced = self._rows[self._next :]
            rested = row == 0 and not len(replaced) and at_rest is not None
            before = at_rest if rested else self._before
            played = self._playable(start_step, rows, row, before)
            self._rule.take(start_step, rows)
            self._rows, self._before = played, before
            self._next, self._is_seam = 0, True
            return Handoff(row=row, replaced=replaced)

    def _playable(self, start_step: int, rows: Rows, row: int, before: Rows | None) -> Rows:
        """
        Return what is played from now on.

        A mean may break a limit that no chunk breaks: it steps where an old chunk ends. Then the
        new one is played alone, or the robot would refuse one after the other until it stands.
        """
        mean, alone, limits = self._rule.merged(start_step, rows, row), rows[row:], self._limits
        if limits is None:
            return mean
        try:
            limits.check(mean, before, self._keyframe_spacing_ns, first_row=row)
            return mean
        except Rejected:
            limits.check(alone, before, self._keyframe_spacing_ns, first_row=row)
        self._rule.clear()
        return alone

    def snapshot(self) -> tuple[int, Rows]:
        """Return the executed steps and the leftover, ``(queued, num_joints)``, of one instant."""
        with self._lock:
            return self._executed_steps, self._rows[self._next :].copy()

    def clear(self) -> None:
        """Forget every queued row, as a new episode demands; executed steps go on."""
        with self._lock:
            self._rule.clear()
            self._rows, self._before = self._empty, None
            self._next, self._is_seam = 0, False

    def start_from(self, values: Rows) -> bool:
        """
        Let the next row start from a command that was no row.

        :param values: ``(num_joints,)`` float32
        :returns: whether that is elsewhere than before
        """
        with self._lock:
            before, self._before = self._before, values
        return before is None or not np.array_equal(before, values)

    def part(self) -> None:
        """Blend no older chunk into those to come, as a new task demands; queued rows stay."""
        with self._lock:
            self._rule.clear()

    @property
    def executed_steps(self) -> int:
        """Return the rows taken so far [steps]."""
        with self._lock:
            return self._executed_steps

    def __len__(self) -> int:
        """Return the number of queued rows [steps]."""
        with self._lock:
            return len(self._rows) - self._next
