# SPDX-License-Identifier: Apache-2.0
"""Measuring a device whose truth is known, in virtual time."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.core.batch import ByStage
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate import LoadBench, measure
from xinfer_ros.engine.calibrate_plan import Load, LoadPlan
from xinfer_ros.errors import ModelError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.fit import Fit, fit
from xinfer_ros.predict.rate_table import Demands

from .simulated_lanes import SimulatedLanes

TRUTH = Calibration(
    name='truth',
    device='none',
    model='none',
    source='made up',
    work_ms=(4.0, 9.0, 12.0),
    overhead_ms=(2.0, 0.25, 1.0),
    output_ms=1.0,
    front_end_ms=8.0,
    reserved_ms=4.0,
    rates=Demands(bound=(2, 2, 3), demand=(0.5, 0.55, 0.45), sharpness=2.0).rates(),
    batch_work=((1.0,), (1.0, 1.7), (1.0, 1.1, 1.3)),
)
PLAN = LoadPlan.of(tuple(Stage), (2, 2, 3), (1, 2, 3))


def _fitted(
    plan: LoadPlan, rounds: int, noise: float = 0.0, disturbed: float = 0.0
) -> tuple[Fit, SimulatedLanes, int]:
    clock = SimulatedClock()
    lanes = SimulatedLanes(TRUTH, plan, clock, noise=noise, disturbed=disturbed)
    done: list[None] = []
    measured = measure(lanes, clock, plan, rounds, seed=3, done=lambda: done.append(None))
    return fit(measured), lanes, len(done)


def _known(stage: Stage, workers: ByStage) -> tuple[slice, ...]:
    """Return where the table was measured: a unit is never beside all workers of its own stage."""
    numbers = zip(Stage, workers, strict=True)
    return tuple(slice(n if other is stage else n + 1) for other, n in numbers)


def test_fit_recovers_a_known_device_exactly_without_noise() -> None:
    found, _, _ = _fitted(PLAN, rounds=2)
    assert found.work_ms == pytest.approx(TRUTH.work_ms, rel=1e-4)
    assert found.overhead_ms == pytest.approx(TRUTH.overhead_ms, rel=1e-4)
    for stage in Stage:
        part = _known(stage, PLAN.workers)
        np.testing.assert_allclose(found.rates[stage][part], TRUTH.rates[stage][part], rtol=1e-3)
        assert found.batch_work[stage] == pytest.approx(TRUTH.batch_work[stage], rel=1e-3)
    assert found.smoothing < 1e-3
    assert found.fit_error is not None
    assert found.fit_error.largest < 1e-3


def test_fit_recovers_a_known_device_in_spite_of_noise_and_a_busy_machine() -> None:
    """Work scatters by 5 %, and a third of the time everything takes twice as long."""
    plan = LoadPlan.of(tuple(Stage), (1, 1, 2), (1, 1, 2))
    found, _, _ = _fitted(plan, rounds=16, noise=0.05, disturbed=0.3)
    assert found.work_ms == pytest.approx(TRUTH.work_ms, rel=0.05)
    assert found.overhead_ms == pytest.approx(TRUTH.overhead_ms, rel=0.05)
    for stage in Stage:
        part = _known(stage, plan.workers)
        np.testing.assert_allclose(found.rates[stage][part], TRUTH.rates[stage][part], rtol=0.08)
    assert found.batch_work[Stage.ACTION] == pytest.approx((1.0, 1.1), rel=0.06)
    assert found.fit_error is not None
    assert 0.0 < found.fit_error.median < 0.03
    assert found.fit_error.largest < 0.15


def test_waiting_unit_beside_full_workers_is_predicted_as_beside_all_but_one() -> None:
    found, _, _ = _fitted(PLAN, rounds=1)
    vit, prefill, action = found.rates
    assert (vit[2] == vit[1]).all()
    assert (prefill[:, 2] == prefill[:, 1]).all()
    assert (action[:, :, 3] == action[:, :, 2]).all()


def test_whole_pipeline_of_a_batch_takes_the_sum_of_its_units() -> None:
    """Three requests: three units of ViT, two of Prefill (two and one), one of Action."""
    found, _, _ = _fitted(PLAN, rounds=1)
    vit, prefill, action = 3 * (2.0 + 4.0), (0.25 + 9.0 * 1.7) + (0.25 + 9.0), 1.0 + 12.0 * 1.3
    assert len(found.infer_ms) == 3
    assert found.infer_ms[2] == pytest.approx(vit + prefill + action, rel=1e-4)


def test_every_load_is_measured_in_every_round_and_never_a_larger_one() -> None:
    """3 · 3 · 4 - 1 combinations, batches 2 of Prefill and 2, 3 of Action, passages of 1 to 3."""
    _, lanes, done = _fitted(PLAN, rounds=2)
    assert PLAN.runs_of_a_round == 35 + 3 + 3
    assert done == 2 * PLAN.runs_of_a_round
    assert lanes.most == {Stage.VIT: 2, Stage.PREFILL: 2, Stage.ACTION: 3}


def test_one_round_has_no_held_out_runs_and_so_no_fit_error() -> None:
    found, _, _ = _fitted(LoadPlan.of(tuple(Stage), (1, 1, 1), (1, 1, 1)), rounds=1)
    assert found.fit_error is None


def test_model_of_one_stage_is_measured_by_that_stage_alone() -> None:
    plan = LoadPlan.of((Stage.ACTION,), (2, 2, 2), (4, 4, 2))
    assert plan.workers == (1, 1, 2)
    assert [(load.counts, load.batch) for load in plan.loads()] == [
        ((0, 0, 1), 1), ((0, 0, 2), 1), ((0, 0, 1), 2),
    ]  # fmt: skip
    found, _, _ = _fitted(plan, rounds=2)
    assert found.stages[:2] == (None, None)
    assert found.work_ms[2] == pytest.approx(12.0, rel=1e-4)
    assert found.rates.shape == (3, 2, 2, 3)
    assert (found.rates[:2] == 1.0).all()
    made = replace(
        TRUTH,
        work_ms=found.work_ms,
        overhead_ms=found.overhead_ms,
        rates=found.rates,
        batch_work=found.batch_work,
    )
    assert made.bound == (1, 1, 2)


def test_run_ends_when_less_would_run_side_by_side() -> None:
    """Ten units of Action are begun; those of the others that end later do not count."""
    clock = SimulatedClock()
    lanes = SimulatedLanes(TRUTH, PLAN, clock)
    run = LoadBench(lanes, clock, PLAN).run(Load(counts=(1, 0, 1)))
    action = run.spans[Stage.ACTION].whole_ms
    assert len(action) == 10
    np.testing.assert_allclose(action, action[0], rtol=1e-6)
    vit = run.spans[Stage.VIT].whole_ms
    assert len(vit) > 10
    np.testing.assert_allclose(vit, vit[0], rtol=1e-6)


def test_run_that_tells_nothing_of_a_stage_is_made_again_and_then_given_up() -> None:
    """Else its empty times would become a table of what is not a number."""
    uneven = replace(TRUTH, work_ms=(0.1, 0.1, 500.0), overhead_ms=(0.0, 0.0, 0.0))
    plan, clock = LoadPlan.of(tuple(Stage), (1, 1, 1), (1, 1, 1)), SimulatedClock()
    bench = LoadBench(SimulatedLanes(uneven, plan, clock), clock, plan)
    assert len(bench.run(Load(counts=(0, 1, 0))).spans[Stage.PREFILL].whole_ms) == 10
    with pytest.raises(
        ModelError, match=r'in 8 runs of \(0, 1, 1\) units at once a stage has not'
    ):
        bench.run(Load(counts=(0, 1, 1)))
