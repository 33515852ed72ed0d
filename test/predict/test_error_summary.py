# SPDX-License-Identifier: Apache-2.0
"""What errors come to, worked out by hand."""

import numpy as np
import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.audit import Audit, LeftOut
from xinfer_ros.predict.error_summary import ErrorSummary, summaries

# unit, stage, error, time of the unit: unit 1 is predicted four times, the others once
PREDICTIONS = (
    (1, Stage.VIT, 4.0, 10.0),
    (1, Stage.VIT, 2.0, 10.0),
    (1, Stage.VIT, -2.0, 10.0),
    (1, Stage.VIT, 0.0, 10.0),
    (2, Stage.VIT, -8.0, 20.0),
    (7, Stage.ACTION, -6.0, 30.0),
)
MEMBERS = np.array([(1, 100, 0), (2, 101, 1), (7, 100, 0), (7, 101, 1), (9, 102, 2)])


def _audit() -> Audit:
    unit, stage, error, taken = zip(*PREDICTIONS, strict=True)
    return Audit(
        at_ns=np.arange(len(unit)),
        unit=np.array(unit),
        stage=np.array(stage),
        error_ms=np.array(error),
        stage_ms=np.array(taken),
        left_out=LeftOut(failed=0, unended=0, early=0),
    )


def _of(name: str, members: np.ndarray | None = MEMBERS) -> ErrorSummary:
    found = {each.stage: each for each in summaries(_audit(), members)}
    assert list(found) == ['VIT', 'ACTION', 'all']
    return found[name]


def test_errors_of_a_stage_have_size_sign_and_share_of_the_stage_time() -> None:
    vit = _of('VIT')
    assert (vit.units, vit.predictions) == (2, 5)
    assert vit.stage_ms == 15.0  # of units, however often each is predicted
    assert vit.mae_ms == pytest.approx((4 + 2 + 2 + 0 + 8) / 5)
    assert vit.mae_share == pytest.approx(16 / 5 / 15)
    assert vit.bias_ms == pytest.approx((4 + 2 - 2 + 0 - 8) / 5)


def test_both_signs_are_told_apart_and_a_perfect_prediction_has_none() -> None:
    vit = _of('VIT')
    assert (vit.over_share, vit.over_ms) == (pytest.approx(2 / 5), pytest.approx(3.0))
    assert (vit.under_share, vit.under_ms) == (pytest.approx(2 / 5), pytest.approx(-5.0))
    action = _of('ACTION')
    assert (action.over_share, action.over_ms) == (0.0, 0.0)


def test_request_that_is_predicted_often_counts_once() -> None:
    """Request 100: mean of unit 1 alone, 2; request 101: of unit 2, 8. Plain it is 16 / 5."""
    vit = _of('VIT')
    assert vit.requests == 2
    assert vit.request_mae_ms == pytest.approx((2.0 + 8.0) / 2)
    assert vit.request_bias_ms == pytest.approx((1.0 - 8.0) / 2)


def test_unit_of_several_requests_counts_for_each() -> None:
    """Request 100: units 1 and 7, 14 / 5; request 101: units 2 and 7, 14 / 2."""
    every = _of('all')
    assert every.requests == 2
    assert every.request_mae_ms == pytest.approx((14 / 5 + 14 / 2) / 2)
    assert every.mae_ms == pytest.approx(22 / 6)


@pytest.mark.parametrize('members', [None, np.zeros((0, 3), np.int64)])
def test_without_known_requests_there_is_no_balanced_error(members: np.ndarray | None) -> None:
    vit = _of('VIT', members)
    assert (vit.requests, vit.request_mae_ms, vit.request_bias_ms) == (None, None, None)


def test_nothing_is_summed_up_of_nothing() -> None:
    none = np.zeros(0)
    empty = Audit(
        at_ns=none, unit=none, stage=none, error_ms=none, stage_ms=none,
        left_out=LeftOut(failed=0, unended=0, early=0),
    )  # fmt: skip
    assert summaries(empty, MEMBERS) == []
