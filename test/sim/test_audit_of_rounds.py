# SPDX-License-Identifier: Apache-2.0
"""How well running stages are predicted in simulated rounds, and that the audit sees the same."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.predict.audit import audit, replay
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.reference.core import ReferenceCore
from xinfer_ros.sched.reference.shared_slack import SharedSlack
from xinfer_ros.sched.reference.state import State
from xinfer_ros.sched.settings import XInferSettings, policy_settings
from xinfer_ros.sim.reference import simulate_reference
from xinfer_ros.sim.scenario import Round, draw_scenario
from xinfer_ros.sim.simulation import simulate
from xinfer_ros.sim.workload import make_workload


@pytest.mark.parametrize(('robots', 'paper_mae_ms'), [(8, 2.0), (18, 2.6), (20, 2.8)])
def test_running_stages_are_predicted_as_well_as_in_the_paper(
    robots: int, paper_mae_ms: float
) -> None:
    """Within 0.6 ms of its mean absolute errors."""
    calibration = load_calibration('paper')
    scenario = draw_scenario(
        make_workload('alternating'), robots, calibration, seed=1, round=Round(end_s=31.0)
    )
    settings = policy_settings('xinfer', calibration)
    result = simulate(scenario, calibration, settings, keep_transitions=True)
    mae_ms = audit(result.transitions, calibration).mae_ms()
    print(f'{robots} robots: MAE {mae_ms:.2f} ms')
    assert mae_ms == pytest.approx(paper_mae_ms, abs=0.6)


class Believing(ReferenceCore):
    """A readable core that writes down what it believes of running units after each dispatch."""

    def __init__(self, state: State, policy: SharedSlack) -> None:
        super().__init__(state, policy)
        self.state = state
        self.beliefs: dict[tuple[int, int], float] = {}

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        started = super().dispatch(now_ns)
        load = self.state.predictor.load(self.state.running)
        for unit in self.state.units:
            residual_ms = unit.progress.residual_ms(self.state.now, load)
            self.beliefs[now_ns, unit.number] = residual_ms
        return started


@pytest.mark.parametrize('learning_rate', [0.0, 0.02])
def test_audit_repeats_what_the_scheduler_believed(learning_rate: float) -> None:
    """Also what it believed while it corrected its stage times."""
    calibration = load_calibration('paper')
    scenario = draw_scenario(
        make_workload('alternating'), 18, calibration, seed=1, round=Round(warm_up_s=0, end_s=2)
    )
    settings = replace(XInferSettings.of(calibration), learning_rate=learning_rate)
    state = State(calibration, settings.limits(calibration), settings)
    core = Believing(state, SharedSlack(state, settings))
    result = simulate_reference(scenario, calibration, settings, core, keep_transitions=True)
    replayed = replay(result.transitions, calibration, learning_rate=learning_rate)
    assert len(replayed.at_ns) > 1000
    believed = [
        core.beliefs[at_ns, unit]
        for at_ns, unit in zip(replayed.at_ns.tolist(), replayed.unit.tolist(), strict=True)
    ]
    np.testing.assert_allclose(replayed.remaining_ms, believed, atol=1e-6)
