# SPDX-License-Identifier: Apache-2.0
"""From times to a calibration, worked out by hand; the whole is in test/engine/test_calibrate."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.fit import fit, never_rising, undisturbed
from xinfer_ros.predict.measurement import Measurements, Passage, ShortRun, Spans

VIT, PREFILL, ACTION = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def _run(batch: int = 1, **whole_ms: list[float]) -> ShortRun:
    """Return a run of the stages named, half a millisecond of launch each."""
    times = {Stage[name]: np.array(ms) for name, ms in whole_ms.items()}
    spans = {stage: Spans(whole_ms=ms, inner_ms=ms - 0.5) for stage, ms in times.items()}
    vit, prefill, action = (int(stage in spans) for stage in Stage)
    return ShortRun(counts=(vit, prefill, action), batch=batch, spans=spans)


def _measured(*runs: ShortRun, passages: tuple[Passage, ...] = ()) -> Measurements:
    largest = max(run.batch for run in runs)
    return Measurements(
        stages=tuple(Stage),
        workers=(1, 1, 1),
        batches=(1, 1, largest),
        runs=runs,
        passages=passages,
    )


SIMPLE = (
    _run(VIT=[4.5]),
    _run(PREFILL=[8.5]),
    _run(ACTION=[12.5]),
    _run(VIT=[6.5], PREFILL=[10.5]),
    _run(VIT=[8.5], ACTION=[14.5]),
    _run(PREFILL=[16.5], ACTION=[18.5]),
    _run(VIT=[10.5], PREFILL=[20.5], ACTION=[24.5]),
)


def test_work_is_the_time_alone_without_the_launch_and_rates_are_work_over_time_beside() -> None:
    """Action: 12 alone, 12 / 14 beside ViT, 12 / 18 beside Prefill, 12 / 24 beside both."""
    found = fit(_measured(*SIMPLE))
    assert found.work_ms == (4.0, 8.0, 12.0)
    assert found.overhead_ms == (0.5, 0.5, 0.5)
    action = found.rates[Stage.ACTION]
    np.testing.assert_allclose(action[:, :, 0], [[1.0, 12 / 18], [12 / 14, 12 / 24]])
    np.testing.assert_allclose(found.rates[Stage.VIT][0], [[1.0, 4 / 8], [4 / 6, 4 / 10]])
    assert found.predicted_ms(Stage.PREFILL, (1, 1, 1)) == pytest.approx(20.5)
    assert found.smoothing == 0.0


def test_rates_that_rise_with_the_load_meet_in_their_middle() -> None:
    """Beside ViT and Prefill, Action was quicker (16) than beside Prefill alone (18)."""
    runs = [*SIMPLE[:-1], _run(VIT=[10.5], PREFILL=[20.5], ACTION=[16.5])]
    found = fit(_measured(*runs))
    middle = np.sqrt(12 / 18 * 12 / 16)
    np.testing.assert_allclose(found.rates[Stage.ACTION][:, 1, 0], [middle, middle])
    assert found.smoothing == pytest.approx(middle / (12 / 18) - 1.0)


def test_nothing_goes_faster_beside_others_than_alone() -> None:
    found = fit(_measured(*SIMPLE[:3], _run(VIT=[4.0], PREFILL=[10.5]), *SIMPLE[4:]))
    assert found.rates.max() == 1.0
    assert found.rates[Stage.VIT][0, 1, 0] == 1.0


def test_work_of_batches_and_of_the_pipeline_never_falls_with_their_size() -> None:
    """Batches of Action take 12, 18 and 16: the last two meet at the middle of 1.5 and 4 / 3."""
    runs = [*SIMPLE, _run(batch=2, ACTION=[18.5]), _run(batch=3, ACTION=[16.5])]
    passages = tuple(Passage(size=size, ms=ms) for size, ms in ((1, 26.0), (2, 40.0), (3, 50.0)))
    found = fit(_measured(*runs, passages=passages))
    middle = np.sqrt(1.5 * 4 / 3)
    assert found.batch_work == (
        (1.0,),
        (1.0,),
        (1.0, pytest.approx(middle), pytest.approx(middle)),
    )
    assert found.infer_ms == pytest.approx((26.0, 40.0, 50.0))


def test_only_the_quickest_quarter_of_the_runs_is_believed() -> None:
    runs = [_run(VIT=[ms, ms]) for ms in (9.0, 5.0, 30.0, 5.2, 8.0, 7.0, 6.0, 11.0)]
    assert undisturbed(runs)[Stage.VIT].whole_ms.tolist() == [5.0, 5.0, 5.2, 5.2]


def test_run_in_which_a_lane_ended_nothing_tells_nothing_of_the_others() -> None:
    """Without the long stage, the short one would seem to have gone quickly beside it."""
    runs = [_run(VIT=[1.0, 1.0], ACTION=[]), _run(VIT=[5.0], ACTION=[20.0])]
    kept = undisturbed(runs)
    assert kept[Stage.VIT].whole_ms.tolist() == [5.0]
    assert kept[Stage.ACTION].whole_ms.tolist() == [20.0]


def test_usual_time_over_the_believed_one_tells_of_a_busy_machine() -> None:
    alone = [_run(VIT=[ms]) for ms in (4.5, 9.0, 9.0, 9.0)]
    found = fit(_measured(*alone, *SIMPLE[1:]))
    assert found.stages[0] is not None
    assert found.stages[0].disturbance == pytest.approx(2.0)
    assert found.stages[1] is not None
    assert found.stages[1].disturbance == 1.0


def test_fit_error_compares_a_fit_to_every_other_run_with_the_runs_between() -> None:
    """The second runs took 10 % longer than the first: foretold is 1 / 1.1 of what they took."""
    longer = [
        _run(**{stage.name: (spans.whole_ms * 1.1).tolist() for stage, spans in run.spans.items()})
        for run in SIMPLE
    ]
    found = fit(_measured(*SIMPLE, *longer))
    assert found.fit_error is not None
    assert found.fit_error.median == pytest.approx(0.1 / 1.1)
    assert found.fit_error.largest == pytest.approx(0.1 / 1.1)


TABLES = st.lists(st.floats(0.05, 1.0), min_size=12, max_size=12)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(TABLES)
def test_levelled_rates_never_rise_and_change_no_more_than_needed(values: list[float]) -> None:
    """Of a pair out of order one must change by half their ratio: no other table changes less."""
    rates: npt.NDArray[np.float64] = np.array(values).reshape(3, 2, 2)
    found = never_rising(rates)
    for axis in range(3):
        assert (np.diff(found, axis=axis) <= 1e-12).all()
    places = [np.array(place) for place in np.ndindex(*rates.shape)]
    worst = max(
        rates[tuple(b)] / rates[tuple(a)] for a in places for b in places if (a <= b).all()
    )
    change = np.abs(np.log(found / rates)).max()
    assert change == pytest.approx(np.log(worst) / 2.0, abs=1e-9)
