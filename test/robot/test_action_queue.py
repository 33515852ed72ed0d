# SPDX-License-Identifier: Apache-2.0
"""The action queue: no row twice, none left out, whatever happens beside it."""

import random
import select
import sys
import threading
from types import FrameType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot import action_queue
from xinfer_ros.robot.action_queue import ActionQueue, QueuedRow, handoff_row
from xinfer_ros.robot.limits import RowLimits

from .driven_robot import numbered_rows


def _give_way() -> None:
    """Let another thread run; unlike os.sched_yield this gives up the interpreter's lock too."""
    select.select((), (), (), 0)


class RandomYields:
    """
    Lets this thread give way at random lines of the action queue.

    :param seed: of the places
    """

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def _trace(self, frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_filename != action_queue.__file__:
            return None
        if self._generator.random() < 0.1:
            _give_way()
        return self._trace

    def __enter__(self) -> None:
        """Begin in this thread."""
        self._before = sys.gettrace()
        sys.settrace(self._trace)  # type: ignore[arg-type]

    def __exit__(self, *_: object) -> None:
        """End."""
        sys.settrace(self._before)


def test_concurrent_pop_and_merge_neither_repeat_nor_skip_a_row() -> None:
    """CQ-03: 50-row chunks are merged beside the popping until 20 000 rows were popped."""
    queue, goal = ActionQueue(2), 20_000
    popped: list[QueuedRow] = []
    done = threading.Event()
    merged: list[int] = []
    wrong_leftovers: list[int] = []

    def merge() -> None:
        with RandomYields(7):
            while not done.is_set():
                start_step, leftover = queue.snapshot()
                steps = range(start_step, start_step + len(leftover))
                if leftover[:, 0].tolist() != list(steps):
                    wrong_leftovers.append(start_step)
                try:
                    queue.merge(start_step, numbered_rows(start_step, 50, chunk=len(merged)))
                except Rejected:  # the other thread has run past the whole chunk
                    continue
                merged.append(start_step)

    merger = threading.Thread(target=merge)
    merger.start()
    with RandomYields(8):
        while len(popped) < goal and merger.is_alive():
            row = queue.pop()
            if row is None:
                _give_way()
            else:
                popped.append(row)
    done.set()
    merger.join()

    assert [row.step for row in popped] == list(range(goal))
    assert [int(row.values[0]) for row in popped] == list(range(goal))
    chunks = [int(row.values[1]) for row in popped]
    assert chunks == sorted(chunks)
    assert wrong_leftovers == []
    assert len(merged) >= goal // 50


operations = st.lists(
    st.one_of(
        st.tuples(st.just('pop'), st.integers(1, 9), st.integers(0, 3)),
        st.tuples(st.just('merge'), st.integers(-12, 4), st.integers(0, 12)),
        st.tuples(st.just('clear'), st.just(0), st.just(0)),
        st.tuples(st.just('snapshot'), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(operations)
def test_queue_behaves_like_a_list_of_steps(sequence: list[tuple[str, int, int]]) -> None:
    """The model is the list of (step, chunk) still to be executed, and the steps executed."""
    queue = ActionQueue(2)
    waiting: list[tuple[int, int]] = []
    executed, seam = 0, False
    for number, (operation, first, second) in enumerate(sequence):
        if operation == 'pop':
            for _ in range(first):
                row = queue.pop(second)
                if not waiting:
                    assert row is None
                    continue
                assert row is not None
                assert row.skipped_steps == min(second, len(waiting) - 1)
                assert row.is_seam is seam
                seam = False
                del waiting[: row.skipped_steps]
                executed += row.skipped_steps
                step, chunk = waiting.pop(0)
                assert (row.step, tuple(row.values)) == (step, (step, chunk))
                assert step == executed
                executed += 1
        elif operation == 'merge':
            start = executed + first
            rows = numbered_rows(start, second, chunk=number)
            if start <= executed < start + second:
                handoff = queue.merge(start, rows)
                assert handoff.row == executed - start
                assert [tuple(row) for row in handoff.replaced.tolist()] == waiting
                seam = True
                waiting = [(step, number) for step in range(executed, start + second)]
            else:
                with pytest.raises(Rejected) as caught:
                    queue.merge(start, rows)
                assert caught.value.reason is Reason.STALE_CHUNK
        elif operation == 'clear':
            queue.clear()
            waiting, seam = [], False
        else:
            steps, leftover = queue.snapshot()
            assert steps == executed
            assert [tuple(row) for row in leftover.tolist()] == waiting
        assert len(queue) == len(waiting)
        assert queue.executed_steps == executed


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 100), st.integers(0, 60), st.integers(0, 200))
def test_handoff_counts_consumed_rows_only(start: int, num_rows: int, executed: int) -> None:
    if start <= executed < start + num_rows:
        assert handoff_row(start, num_rows, executed) == executed - start
    else:
        with pytest.raises(Rejected, match=f'step {executed} is next') as caught:
            handoff_row(start, num_rows, executed)
        assert caught.value.reason is Reason.STALE_CHUNK


def test_empty_queue_gives_nothing_and_counts_nothing() -> None:
    queue = ActionQueue(3)
    assert [queue.pop() for _ in range(21)] == [None] * 21
    assert queue.executed_steps == 0
    assert len(queue) == 0
    assert queue.snapshot()[1].shape == (0, 3)


def test_stale_chunk_leaves_the_queue_as_it_was() -> None:
    queue = ActionQueue(2)
    queue.merge(0, numbered_rows(0, 10, chunk=1))
    for _ in range(4):
        queue.pop()
    for start, num_rows in ((0, 4), (5, 10), (0, 0)):
        with pytest.raises(Rejected):
            queue.merge(start, numbered_rows(start, num_rows, chunk=2))
    assert queue.snapshot()[1][:, 0].tolist() == [4, 5, 6, 7, 8, 9]
    assert queue.snapshot()[1][:, 1].tolist() == [1] * 6


def test_clearing_forgets_rows_but_not_the_executed_steps() -> None:
    queue = ActionQueue(2)
    queue.merge(0, numbered_rows(0, 10))
    for _ in range(3):
        queue.pop()
    queue.clear()
    assert len(queue) == 0
    assert queue.executed_steps == 3
    assert queue.merge(3, numbered_rows(3, 5)).row == 0


def test_leftover_is_a_copy() -> None:
    queue = ActionQueue(2)
    queue.merge(0, numbered_rows(0, 3))
    _, leftover = queue.snapshot()
    leftover[:] = np.nan
    row = queue.pop()
    assert row is not None
    assert row.values.tolist() == [0, 0]


def test_a_chunk_longer_than_a_queue_is_refused() -> None:
    queue = ActionQueue(1)
    with pytest.raises(Rejected, match='a queue holds 4096') as caught:
        queue.merge(0, np.zeros((action_queue.MAX_QUEUED_STEPS + 1, 1), np.float32))
    assert caught.value.reason is Reason.REJECTED_ROWS


def _limited() -> ActionQueue:
    none = np.full(2, np.inf)
    limits = RowLimits(
        joint_names=('a', 'b'), lower=-none, upper=none, velocity=none,
        step=np.array([2.0, np.inf]),
    )  # fmt: skip
    return ActionQueue(2, limits=limits, keyframe_spacing_ns=30_000_000)


def test_a_chunk_whose_seam_is_too_wide_is_refused_whole() -> None:
    """The step from the row executed last to the first of the new chunk counts as any other."""
    queue = _limited()
    queue.merge(0, numbered_rows(0, 10, chunk=1))
    for _ in range(3):
        queue.pop()
    with pytest.raises(Rejected, match='row 0 moves a by 3') as caught:
        queue.merge(3, numbered_rows(5, 10, chunk=2))
    assert caught.value.reason is Reason.REJECTED_LIMITS
    assert queue.snapshot()[1][:, 0].tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert queue.merge(3, numbered_rows(4, 10, chunk=2)).row == 0


def test_rows_that_are_over_do_not_count_against_a_chunk() -> None:
    queue = _limited()
    queue.merge(0, numbered_rows(0, 10))
    for _ in range(3):
        queue.pop()
    rows = numbered_rows(0, 10, chunk=2)
    rows[0] = 100.0
    assert queue.merge(0, rows).row == 3


def test_a_robot_at_rest_starts_from_where_it_is_measured() -> None:
    """CQ-01's kind: the first row after a standstill must not be far from the arm."""
    queue = _limited()
    at_rest = np.array([10.0, 0.0], np.float32)
    with pytest.raises(Rejected, match='row 0 moves a by 10'):
        queue.merge(0, numbered_rows(0, 10), at_rest)
    assert queue.merge(0, numbered_rows(9, 10), at_rest).row == 0
    while queue.pop() is not None:
        pass
    assert queue.merge(10, numbered_rows(11, 5), at_rest).row == 0  # and not from 18, held before
    queue.clear()
    assert queue.merge(10, numbered_rows(90, 5)).row == 0  # a new episode, and nothing measured


def test_a_robot_that_ran_out_of_rows_starts_from_the_last_of_them() -> None:
    """What was measured with the observation is where it was before it executed three rows."""
    queue = _limited()
    queue.merge(0, numbered_rows(0, 3))
    at_rest = np.array([0.0, 0.0], np.float32)
    for _ in range(3):
        queue.pop()
    with pytest.raises(Rejected, match='row 3 moves a by 2'):  # back to where it was
        queue.merge(0, numbered_rows(0, 10) - np.float32(3.5), at_rest)
    assert queue.merge(0, numbered_rows(0, 10), at_rest).row == 3


def test_a_chunk_that_replaces_one_of_which_no_row_was_executed_starts_at_rest_too() -> None:
    queue = _limited()
    at_rest = np.array([5.0, 0.0], np.float32)
    queue.merge(0, numbered_rows(5, 10), at_rest)
    with pytest.raises(Rejected, match='row 0 moves a by 5'):
        queue.merge(0, numbered_rows(10, 10), at_rest)
    assert queue.merge(0, numbered_rows(6, 10), at_rest).row == 0


def test_a_late_tick_makes_no_step_wider_than_its_limit() -> None:
    """Two rows of 1 make 2, which is allowed; a third one is not left out."""
    queue = _limited()
    queue.merge(0, numbered_rows(0, 10), np.array([-1.0, 0.0], np.float32))
    assert [row.step for row in (queue.pop(5), queue.pop(5), queue.pop())] == [1, 3, 4]


def test_speed_does_not_count_where_ticks_were_missed() -> None:
    none = np.full(2, np.inf)
    limits = RowLimits(
        joint_names=('a', 'b'), lower=-none, upper=none, velocity=np.full(2, 40.0), step=none
    )
    queue = ActionQueue(2, limits=limits, keyframe_spacing_ns=30_000_000)
    queue.merge(0, numbered_rows(0, 10))
    assert [row.step for row in (queue.pop(), queue.pop(4))] == [0, 5]
