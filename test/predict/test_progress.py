# SPDX-License-Identifier: Apache-2.0
"""Equations 3 and 8 to 10, worked out by hand on a device where every unit costs one share."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.progress import Predictor, Progress, slack_ms

from .devices import sharing_device

ALONE = (0, 0, 0)


def test_stage_time_is_overhead_and_work_under_load() -> None:
    """Equation 8: h + W / rho(n) = 1 + 8 · (1 + 3), the unit itself is not one of n."""
    predictor = Predictor(sharing_device())
    assert predictor.stage_ms(Stage.PREFILL, ALONE) == 9.0
    assert predictor.stage_ms(Stage.PREFILL, (1, 1, 1)) == pytest.approx(1.0 + 8.0 * 4)


def test_lookups_are_clipped_to_the_table() -> None:
    predictor = Predictor(sharing_device())
    assert predictor.stage_ms(Stage.VIT, (9, 0, 0)) == predictor.stage_ms(Stage.VIT, (2, 0, 0))


def test_running_unit_is_taken_out_before_the_lookup_is_clipped() -> None:
    """Reading 10: of three running ViT units the table of two others is meant, not of one."""
    predictor = Predictor(sharing_device())
    assert predictor.rate(Stage.VIT, (3, 0, 0)) == pytest.approx(1 / 3)
    assert predictor.rate(Stage.VIT, (4, 0, 0)) == pytest.approx(1 / 3)
    assert predictor.rate(Stage.VIT, (1, 0, 0)) == 1.0
    assert predictor.rate(Stage.VIT, ALONE) == 1.0


def test_progress_begins_after_the_overhead() -> None:
    """Equation 9: nothing is done before beta = 12."""
    progress = Progress(stage=Stage.VIT, begin_ms=12.0, work_ms=4.0)
    progress.advance(10.0, 12.0, 1.0)
    assert progress.done_ms == 0.0
    progress.advance(11.0, 14.0, 0.5)
    assert progress.done_ms == 1.0
    assert progress.left_ms == 3.0


def test_work_done_is_the_integral_of_the_rates_observed() -> None:
    progress = Progress(stage=Stage.VIT, begin_ms=0.0, work_ms=4.0)
    progress.advance(0.0, 2.0, 1.0)
    progress.advance(2.0, 3.0, 0.5)
    assert progress.done_ms == 2.5
    progress.advance(3.0, 13.0, 1.0)
    assert progress.left_ms == 0.0


def test_residual_is_the_overhead_left_and_the_work_left_under_load() -> None:
    """Equation 9: [12 - 11]+ + 4 · 2 beside one other, and [12 - 13]+ + 4."""
    predictor = Predictor(sharing_device())
    progress = Progress(stage=Stage.VIT, begin_ms=12.0, work_ms=4.0)
    assert progress.residual_ms(11.0, predictor.load((1, 0, 1))) == pytest.approx(1.0 + 8.0)
    assert progress.residual_ms(13.0, predictor.load((1, 0, 0))) == 4.0


def test_remaining_time_is_the_current_stage_the_later_ones_and_the_output() -> None:
    """Equation 10: h_out 3, q of Prefill 1 + 8 and of Action 1 + 12, alone."""
    load = Predictor(sharing_device()).load(ALONE)
    assert load.remaining_ms(Stage.VIT, load.stage_ms[Stage.VIT]) == 6.0 + 9.0 + 13.0 + 3.0
    assert load.remaining_ms(Stage.VIT, 2.5) == 2.5 + 9.0 + 13.0 + 3.0
    assert load.remaining_ms(Stage.ACTION, 2.5) == 5.5


def test_slack_is_what_the_deadline_leaves() -> None:
    """Equation 3."""
    assert slack_ms(86.0, 10.0, 31.0) == 45.0
    assert slack_ms(30.0, 10.0, 31.0) == -11.0


def test_without_interference_everything_runs_as_if_alone() -> None:
    predictor = Predictor(sharing_device(), interference=False)
    assert predictor.load((2, 2, 2)) == Predictor(sharing_device()).load(ALONE)


def test_work_of_a_batch_is_that_of_its_size() -> None:
    predictor = Predictor(sharing_device(batch_work=((1.0, 1.5), (1.0,), (1.0,))))
    assert predictor.work_ms(Stage.VIT, 2) == 6.0


def test_correction_drifts_to_the_work_that_units_turn_out_to_hold() -> None:
    """W of ViT is 4; a unit that took 6: 1 + 0.5 · (1.5 - 1) = 1.25."""
    predictor = Predictor(sharing_device())
    before = predictor.load(ALONE)
    predictor.learn(Stage.VIT, 1, 6.0, 0.5)
    assert predictor.correction == [1.25, 1.0, 1.0]
    assert predictor.work_ms(Stage.VIT, 1) == 5.0
    assert predictor.load(ALONE).stage_ms[Stage.VIT] == before.stage_ms[Stage.VIT] + 1.0
    assert predictor.slowdown() == pytest.approx(25.0 / 24.0)


@pytest.mark.parametrize(('done_ms', 'drift'), [(400.0, 10.0), (0.4, 0.1), (0.0, 1.0)])
def test_correction_believes_no_outlier(done_ms: float, drift: float) -> None:
    predictor = Predictor(sharing_device())
    predictor.learn(Stage.VIT, 1, done_ms, 1.0)
    assert predictor.correction[Stage.VIT] == pytest.approx(drift)


def test_nothing_is_learnt_at_rate_zero() -> None:
    predictor = Predictor(sharing_device())
    predictor.learn(Stage.VIT, 1, 6.0, 0.0)
    assert predictor.correction == [1.0, 1.0, 1.0]
