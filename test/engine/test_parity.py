# SPDX-License-Identifier: Apache-2.0
"""The engine decides as the simulator does: one scenario, two drivers, equal decision logs."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.core import DecisionTuple
from xinfer_ros.sched.decision import Decision, Verdict
from xinfer_ros.sched.registry import Implementation, make_core
from xinfer_ros.sched.scheduler import Scheduler
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sim.scenario import Round, draw_scenario
from xinfer_ros.sim.simulation import SimulationResult, simulate
from xinfer_ros.sim.workload import make_workload

from .virtual_engine import VirtualEngine

WAITING = {
    'slack_gate': {Verdict.DEFERRED_GATE},
    'xinfer': {Verdict.DEFERRED_CURRENT, Verdict.DEFERRED_FORECAST},
    'foresight': {Verdict.DEFERRED_ROLLOUT},
    'foresight_shed': {Verdict.DEFERRED_ROLLOUT},
}


def _runs(
    policy: str, implementation: Implementation, robots: int, end_s: float
) -> tuple[SimulationResult, VirtualEngine, list[DecisionTuple]]:
    """Return what simulator and engine made of one scenario, and the engine's decisions."""
    calibration = load_calibration('paper')
    scenario = draw_scenario(
        make_workload('alternating'),
        robots,
        calibration,
        seed=5,
        round=Round(warm_up_s=0.5, end_s=end_s),
    )
    settings = policy_settings(policy, calibration)
    simulated = simulate(scenario, calibration, settings, keep_decisions=True)
    core = make_core(policy, calibration, implementation=implementation)
    core.keep_log(True)
    scheduler = Scheduler(core, calibration, settings.limits(calibration))
    divided = replace(scenario, true_rates=settings.device_rates(scenario.true_rates))
    engine = VirtualEngine(divided, calibration, scheduler)
    engine.run()
    return simulated, engine, list(core.take_decisions())


@pytest.mark.parametrize('policy', sorted(POLICIES))
def test_engine_and_simulator_make_the_same_decisions_at_the_same_times(policy: str) -> None:
    """DESIGN.md §2: no policy is written twice, and no driver decides anything."""
    simulated, engine, decisions = _runs(policy, 'native', 14, 6.0)
    assert engine.others == []
    assert decisions == simulated.decisions
    np.testing.assert_array_equal(np.array(engine.responses), simulated.responses)
    assert len(engine.responses) > 150
    verdicts = {Decision.of(values).verdict for values in decisions}
    assert WAITING.get(policy, set()) <= verdicts  # else ticks would not have been compared


@pytest.mark.parametrize('policy', sorted(POLICIES))
def test_engine_with_the_readable_core_starts_the_same_units(policy: str) -> None:
    simulated, engine, _ = _runs(policy, 'reference', 10, 2.0)
    np.testing.assert_array_equal(np.array(engine.responses), simulated.responses)


@pytest.mark.parametrize('policy', sorted(POLICIES))
def test_only_the_default_policy_asks_robots_back_later(policy: str) -> None:
    """Else the logs could agree without any pace."""
    _, engine, _ = _runs(policy, 'native', 18, 3.0)
    assert any(engine.paces_ns) == policy.startswith('foresight')


def test_engine_learns_the_slowdown_of_its_device() -> None:
    _, engine, _ = _runs('foresight', 'native', 14, 6.0)
    assert engine.beats[0].slowdown == 1.0
    assert engine.beats[-1].slowdown != 1.0
