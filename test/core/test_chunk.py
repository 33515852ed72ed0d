# SPDX-License-Identifier: Apache-2.0
"""The checks that rows pass at both ends of the wire."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.chunk import Answer, Commitment, check_rows, columns_by_name
from xinfer_ros.errors import Reason, Rejected

names = st.text('abcdef_1', min_size=1, max_size=4)


def _refusal(rows: np.ndarray, num_joints: int) -> Rejected:
    with pytest.raises(Rejected) as caught:
        check_rows(rows, num_joints)
    return caught.value


def test_good_rows_pass() -> None:
    check_rows(np.zeros((50, 7), np.float32), 7)
    check_rows(np.full((1, 1), np.finfo(np.float32).max, np.float32), 1)


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_value_that_is_not_finite_is_refused_with_its_place(value: float) -> None:
    """CQ-10: a 50×7 chunk with one NaN in row 20, or one inf."""
    rows = np.zeros((50, 7), np.float32)
    rows[20, 3] = value
    refusal = _refusal(rows, 7)
    assert refusal.reason is Reason.REJECTED_ROWS
    assert 'row 20, column 3' in refusal.detail
    assert str(value) in refusal.detail


@pytest.mark.parametrize('shape', [(0, 7), (0, 0), (7,), (1, 2, 7)])
def test_chunk_without_rows_is_refused(shape: tuple[int, ...]) -> None:
    """CQ-10: an empty chunk is no success."""
    assert _refusal(np.zeros(shape, np.float32), 7).reason is Reason.REJECTED_ROWS


@pytest.mark.parametrize('columns', [5, 7, 32])
def test_surplus_or_missing_columns_are_refused_with_both_numbers(columns: int) -> None:
    """CQ-11: 6 joints and 5, 7 or 32 columns; never cut or padded."""
    refusal = _refusal(np.zeros((50, columns), np.float32), 6)
    assert refusal.reason is Reason.REJECTED_COLUMNS
    assert f'{columns} columns' in refusal.detail
    assert '6 joints' in refusal.detail


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.binary(min_size=0, max_size=400), st.integers(1, 7))
def test_only_finite_rows_of_the_right_width_pass(data: bytes, num_joints: int) -> None:
    """CQ-10: whatever bytes come, nothing that is not finite gets through."""
    values = np.frombuffer(data[: len(data) // 4 * 4], np.float32)
    rows = values[: len(values) // num_joints * num_joints].reshape(-1, num_joints)
    if len(rows) and np.isfinite(rows).all():
        check_rows(rows, num_joints)
    else:
        assert _refusal(rows, num_joints).reason is Reason.REJECTED_ROWS


def test_columns_are_found_by_name() -> None:
    """CQ-11: robot joints [b, a, c], chunk joints [a, b, c]."""
    rows = np.array([[1, 2, 3]], np.float32)
    columns = columns_by_name(['b', 'a', 'c'], ['a', 'b', 'c'])
    assert rows[:, columns].tolist() == [[2, 1, 3]]


@settings(deadline=None, derandomize=True)
@given(st.lists(names, unique=True, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_every_joint_gets_its_own_column(wanted: list[str], random) -> None:
    given_names = list(wanted)
    random.shuffle(given_names)
    columns = columns_by_name(wanted, given_names)
    assert [given_names[column] for column in columns] == wanted


@pytest.mark.parametrize(
    ('wanted', 'received'),
    [
        (['a', 'b', 'c'], ['a', 'b', 'x']),
        (['a', 'b', 'c'], ['a', 'b']),
        (['a', 'b'], ['a', 'b', 'c']),
        (['a', 'b'], ['a', 'b', 'b']),
        (['a', 'b'], ['a', 'a']),
        (['a', 'b'], []),
    ],
)
def test_other_joints_are_refused_with_both_lists(wanted: list[str], received: list[str]) -> None:
    """CQ-11: an unknown name is refused with expected and received names."""
    with pytest.raises(Rejected) as caught:
        columns_by_name(wanted, received)
    assert caught.value.reason is Reason.REJECTED_COLUMNS
    assert f'expected {", ".join(wanted)}; received {", ".join(received)}' in caught.value.detail


def test_answer_without_rows_says_why() -> None:
    answer = Answer(session=1, episode=0, request_id=2, epoch=3, reason=Reason.EXPIRED)
    assert answer.rows.shape == (0, 0)
    assert answer.times.server_ns == 0


@pytest.mark.parametrize(
    ('commitment', 'leftover', 'limit', 'frozen', 'degraded'),
    [
        (0, 40, 8, 0, False),  # not tied
        (7, 40, 8, 7, False),
        (8, 40, 8, 8, True),
        (9, 40, 8, 8, True),
        (6, 0, 8, 0, False),  # nothing was promised yet
        (9, 5, 8, 5, False),
        (3, 40, 0, 0, True),  # a model that honours none
        (49, 49, 50, 49, False),
    ],
)
def test_commitment_is_kept_as_far_as_leftover_and_model_go(
    commitment: int, leftover: int, limit: int, frozen: int, degraded: bool
) -> None:
    """RT-02: d_max = 8: 7 is normal; 8 and 9 are clamped and flagged, never an exception."""
    kept = Commitment.of(commitment, leftover, limit)
    assert (kept.frozen_steps, kept.degraded) == (frozen, degraded)
