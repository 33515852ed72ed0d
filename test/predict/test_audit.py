# SPDX-License-Identifier: Apache-2.0
"""Predictions of running stages against the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.audit import LeftOut, Transitions, audit, replay

from .devices import sharing_device

MS = 1_000_000


def _rows(*rows: tuple[float, int, int, int, int]) -> Transitions:
    return np.array([(round(ms * MS), *rest) for ms, *rest in rows], dtype=np.int64)


ROUND = _rows(
    (100, 1, Stage.VIT, 1, 1),
    (106, 2, Stage.PREFILL, 1, 1),
    (112, 1, Stage.VIT, 1, 0),
    (112, 3, Stage.PREFILL, 1, 1),
    (150, 2, Stage.PREFILL, 1, 0),
)


def test_remaining_times_follow_from_the_counts_of_each_transition() -> None:
    """
    Overhead (2, 1, 1), work (4, 8, 12), every other unit costs as much time again.

    At 100: 2 + 4. At 106: unit 1 is done by the table; unit 2: 1 + 8 · 2. At 112: unit 2 has
    done 5 / 2, so 5.5 · 2 is left; unit 3: 1 + 8 · 2. At 150 unit 3 is done by the table.
    """
    predictions = replay(ROUND, sharing_device())
    made = list(zip(predictions.at_ns // MS, predictions.unit, predictions.stage, strict=True))
    assert made == [
        (100, 1, Stage.VIT),
        (106, 1, Stage.VIT),
        (106, 2, Stage.PREFILL),
        (112, 2, Stage.PREFILL),
        (112, 3, Stage.PREFILL),
        (150, 3, Stage.PREFILL),
    ]
    np.testing.assert_allclose(predictions.remaining_ms, [6, 0, 17, 11, 17, 0], atol=1e-9)


def test_errors_are_predicted_less_true_times_of_units_that_were_seen_to_end() -> None:
    result = audit(ROUND, sharing_device())
    np.testing.assert_allclose(result.error_ms, [6 - 12, 0 - 6, 17 - 44, 11 - 38], atol=1e-9)
    assert result.mae_ms() == pytest.approx((6 + 6 + 27 + 27) / 4)
    assert result.mae_ms(Stage.VIT) == pytest.approx(6.0)
    assert result.bias_ms(Stage.PREFILL) == pytest.approx(-27.0)
    with pytest.raises(ValueError, match='no prediction of ACTION'):
        result.mae_ms(Stage.ACTION)


def test_round_without_transitions_has_no_errors() -> None:
    result = audit(np.zeros((0, 5), dtype=np.int64), sharing_device())
    assert len(result.error_ms) == 0
    with pytest.raises(ValueError, match='no prediction of any stage'):
        result.bias_ms()


def test_batch_is_predicted_by_the_work_of_the_batch() -> None:
    device = sharing_device(batch_work=((1.0, 1.5), (1.0,), (1.0,)))
    predictions = replay(_rows((0, 1, Stage.VIT, 2, 1)), device)
    np.testing.assert_allclose(predictions.remaining_ms, [2 + 4 * 1.5])


def test_units_that_failed_or_never_ended_are_left_out_and_counted() -> None:
    """But they are in the way of the others: unit 1 is predicted beside one other, then alone."""
    transitions = _rows(
        (0, 1, Stage.VIT, 1, 1),
        (1, 2, Stage.PREFILL, 1, 1),
        (3, 2, Stage.PREFILL, 1, -1),
        (6, 1, Stage.VIT, 1, 0),
        (6, 3, Stage.VIT, 1, 1),
    )
    result = audit(transitions, sharing_device())
    assert set(result.unit) == {1}
    np.testing.assert_allclose(result.error_ms, [6 - 6, 1 + 4 * 2 - 5, 3.5 - 3], atol=1e-9)
    assert result.left_out == LeftOut(failed=1, unended=1, early=0)


def test_units_that_started_before_the_record_begins_are_left_out() -> None:
    result = audit(ROUND, sharing_device(), from_ns=105 * MS)
    assert set(result.unit) == {2}
    assert result.left_out == LeftOut(failed=0, unended=1, early=1)


def test_unit_numbers_of_a_long_life_cost_no_memory() -> None:
    late = ROUND.copy()
    late[:, 1] += 10**15
    np.testing.assert_array_equal(
        audit(late, sharing_device()).error_ms, audit(ROUND, sharing_device()).error_ms
    )


def test_corrected_predictions_follow_the_work_that_units_turned_out_to_hold() -> None:
    """ViT holds 8 instead of 4: after one unit at rate 1/4, 4 + (8 - 4) / 4 = 5 is believed."""
    slow = _rows(
        (0, 1, Stage.VIT, 1, 1),
        (10, 1, Stage.VIT, 1, 0),
        (20, 2, Stage.VIT, 1, 1),
        (30, 2, Stage.VIT, 1, 0),
        (40, 3, Stage.VIT, 1, 1),
        (50, 3, Stage.VIT, 1, 0),
    )
    corrected = audit(slow, sharing_device(), learning_rate=0.25)
    np.testing.assert_allclose(corrected.error_ms, [6 - 10, 7 - 10, 7.75 - 10])
    np.testing.assert_allclose(audit(slow, sharing_device()).error_ms, [-4, -4, -4])


def test_failed_unit_teaches_nothing() -> None:
    failed = _rows(
        (0, 1, Stage.VIT, 1, 1),
        (90, 1, Stage.VIT, 1, -1),
        (100, 2, Stage.VIT, 1, 1),
        (106, 2, Stage.VIT, 1, 0),
    )
    result = audit(failed, sharing_device(), learning_rate=1.0)
    np.testing.assert_allclose(result.error_ms, [0.0], atol=1e-9)


@st.composite
def rounds(draw: st.DrawFn) -> Transitions:
    """Return units that overlap anyhow."""
    units = draw(
        st.lists(
            st.tuples(st.integers(0, 200), st.sampled_from(list(Stage)), st.integers(1, 60)),
            min_size=2,
            max_size=30,
        )
    )
    rows = []
    for number, (start_ms, stage, length_ms) in enumerate(units, 1):
        rows.append((start_ms * MS, number, stage, 1, 1))
        rows.append(((start_ms + length_ms) * MS, number, stage, 1, 0))
    return np.array(sorted(rows, key=lambda row: row[0]), dtype=np.int64)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(rounds(), rounds(), st.integers(0, 260))
def test_no_prediction_depends_on_what_comes_later(
    one: Transitions, other: Transitions, cut_ms: int
) -> None:
    """Another future: what is after the cut is replaced; what was predicted before stays."""
    past = one[one[:, 0] <= cut_ms * MS]
    later = other.copy()
    later[:, 0] += (cut_ms + 1) * MS
    later[:, 1] += 100
    expected = _made_until(past, cut_ms)
    assert _made_until(one, cut_ms) == expected
    assert _made_until(np.concatenate([past, later]), cut_ms) == expected


def _made_until(transitions: Transitions, cut_ms: int) -> list[tuple[int, int, float]]:
    predictions = replay(transitions, sharing_device())
    made = zip(predictions.at_ns, predictions.unit, predictions.remaining_ms, strict=True)
    return [(int(at), int(unit), ms) for at, unit, ms in made if at <= cut_ms * MS]
