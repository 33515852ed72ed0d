# SPDX-License-Identifier: Apache-2.0
"""Replacement and temporal ensembling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import Rejected
from xinfer_ros.robot.action_queue import ActionQueue
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.merge_rule import MAX_CHUNKS, TemporalEnsemble

GRIPPER = np.array([False, True])


def _rows(arm: float, gripper: list[float]) -> Rows:
    return np.array([[arm, value] for value in gripper], np.float32)


def _play(queue: ActionQueue, num_rows: int) -> Rows:
    taken = [queue.pop() for _ in range(num_rows)]
    return np.array([row.values for row in taken if row is not None])


def test_a_row_that_two_chunks_cover_is_their_weighted_mean() -> None:
    queue = ActionQueue(2, TemporalEnsemble(0.5, GRIPPER))
    queue.merge(0, _rows(0.0, [0.0] * 10))
    _play(queue, 4)
    queue.merge(4, _rows(1.0, [0.0] * 10))
    rest = _play(queue, 10)
    newer = np.exp(-0.5) / (1 + np.exp(-0.5))
    np.testing.assert_allclose(rest[:6, 0], newer, atol=1e-6)
    np.testing.assert_allclose(rest[6:, 0], 1.0)


def test_without_decay_all_chunks_count_alike() -> None:
    queue = ActionQueue(2, TemporalEnsemble(0.0, GRIPPER))
    for chunk in range(3):
        queue.merge(0, _rows(float(chunk), [0.0] * 5))
    np.testing.assert_allclose(_play(queue, 5)[:, 0], 1.0)


def test_a_chunk_whose_handoff_has_passed_counts_from_there_on() -> None:
    queue = ActionQueue(1, TemporalEnsemble(0.0, np.array([False])))
    queue.merge(0, np.arange(10, dtype=np.float32)[:, None])
    _play(queue, 3)
    handoff = queue.merge(0, np.arange(10, dtype=np.float32)[:, None] + 2)
    assert handoff.row == 3
    np.testing.assert_allclose(_play(queue, 7)[:, 0], np.arange(3, 10) + 1)


@pytest.mark.parametrize('ensembled', [False, True])
def test_a_switching_joint_is_never_blended(ensembled: bool) -> None:
    """CQ-12: old gripper 0, new gripper 1 on 10 overlapping rows; open-close-open stays so."""
    rule = TemporalEnsemble(0.01, GRIPPER) if ensembled else None
    queue = ActionQueue(2, rule)
    queue.merge(0, _rows(0.0, [0.0] * 20))
    before = _play(queue, 10)
    newer = [1.0] * 4 + [0.0] * 3 + [1.0] * 3
    queue.merge(10, _rows(1.0, newer))
    after = _play(queue, 10)
    played = np.concatenate([before[:, 1], after[:, 1]])
    assert set(played.tolist()) <= {0.0, 1.0}
    seam = 1
    assert np.count_nonzero(np.diff(played)) == np.count_nonzero(np.diff(newer)) + seam
    if ensembled:
        assert ((after[:, 0] > 0.4) & (after[:, 0] < 0.6)).all()  # the arm may be blended


def test_a_new_episode_forgets_the_chunks_of_the_old_one() -> None:
    """CQ-05: nothing of them enters a mean."""
    queue = ActionQueue(2, TemporalEnsemble(0.0, GRIPPER))
    queue.merge(0, _rows(100.0, [0.0] * 50))
    _play(queue, 5)
    queue.clear()
    queue.merge(5, _rows(1.0, [0.0] * 10))
    np.testing.assert_allclose(_play(queue, 10)[:, 0], 1.0)


def test_a_mean_that_breaks_a_limit_gives_way_to_the_new_chunk_alone() -> None:
    """RT-02's kind: it steps where the old chunk ends; else one after the other is refused."""
    none = np.full(1, np.inf)
    limits = RowLimits(
        joint_names=('arm',), lower=-none, upper=none, velocity=none, step=np.array([0.2])
    )
    queue = ActionQueue(1, TemporalEnsemble(0.0, np.array([False])), limits)
    up = np.arange(20, dtype=np.float32)[:, None] * np.float32(0.1)
    queue.merge(0, up)
    _play(queue, 5)
    down = np.float32(0.5) - up
    assert queue.merge(5, down).row == 0
    np.testing.assert_array_equal(_play(queue, 4), down[:4])
    with pytest.raises(Rejected, match='row 0 moves arm'):
        queue.merge(9, up + np.float32(5.0))
    queue.merge(9, down[4:])  # what broke the limit enters no later mean
    np.testing.assert_allclose(_play(queue, 16), down[4:], atol=1e-6)


def test_a_flood_of_chunks_is_bounded() -> None:
    rule = TemporalEnsemble(0.0, np.array([False]))
    queue = ActionQueue(1, rule)
    for chunk in range(3 * MAX_CHUNKS):
        queue.merge(0, np.full((5, 1), chunk, np.float32))
    newest = np.arange(3 * MAX_CHUNKS)[-MAX_CHUNKS - 1 :]  # those kept and the new one
    np.testing.assert_allclose(_play(queue, 1)[0, 0], newest.mean(), rtol=1e-6)


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 12), st.floats(-3, 3, width=32)),
        min_size=1,
        max_size=12,
    ),
    st.floats(0, 2),
)
def test_a_mean_lies_within_the_chunks_and_no_row_is_left_out(
    chunks: list[tuple[int, int, float]], decay: float
) -> None:
    queue = ActionQueue(1, TemporalEnsemble(decay, np.array([False])))
    steps, given_values = [], []
    for pops, num_rows, value in chunks:
        for _ in range(pops):
            row = queue.pop()
            if row is not None:
                steps.append(row.step)
                assert min(given_values) - 1e-4 <= row.values[0] <= max(given_values) + 1e-4
        queue.merge(queue.executed_steps, np.full((num_rows, 1), value, np.float32))
        given_values.append(value)
        assert len(queue) == num_rows
    assert steps == list(range(len(steps)))
