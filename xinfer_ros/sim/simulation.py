# SPDX-License-Identifier: Apache-2.0
"""Simulates one round with the compiled event kernel."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros import _native
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import PolicySettings
from xinfer_ros.sim.metrics import Responses, RoundMetrics, round_metrics
from xinfer_ros.sim.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """
    What a round left behind.

    :param responses: rows robot, index, sent, received, budget, shape ``(n, 5)`` int64 [ns]
    :param transitions: rows time [ns], unit, stage, size of the batch, 1 if it starts and 0 if
        it is seen to end, shape ``(m, 5)`` int64, if they were asked for
    :param decisions: every decision, if they were asked for
    :param events: events handled
    """

    responses: Responses
    transitions: npt.NDArray[np.int64]
    decisions: 'list[_native.DecisionTuple]'
    events: int

    def metrics(self, scenario: Scenario) -> RoundMetrics:
        """Return what the round came to."""
        return round_metrics(
            self.responses,
            warm_up_s=scenario.round.warm_up_s,
            end_s=scenario.round.end_s,
            stayed=scenario.quota >= scenario.budget_ns.shape[1],
        )


def timing(scenario: Scenario, calibration: Calibration) -> dict[str, int]:
    """Return the constant times of a scenario as the kernels take them [ns]."""
    return {
        'end_ns': round(scenario.round.end_s * 1e9),
        'period_ns': round(scenario.round.period_ms * 1e6),
        'reserved_ns': round(calibration.reserved_ms * 1e6),
        'output_ns': round(calibration.output_ms * 1e6),
        'observation_ns': round(scenario.world.observation_ms * 1e6),
        'tick_ns': round(scenario.world.tick_ms * 1e6),
    }


def simulate(
    scenario: Scenario,
    calibration: Calibration,
    settings: PolicySettings,
    *,
    keep_transitions: bool = False,
    keep_decisions: bool = False,
) -> SimulationResult:
    """
    Simulate one round.

    :param calibration: what the scheduler believes of the device
    :param settings: of the scheduling policy
    :param keep_transitions: keep every start and end of a unit, for the audit
    :param keep_decisions: keep every decision
    """
    core = native_core(calibration, settings)
    core.keep_log(keep_decisions)
    responses, transitions, events = _native.simulate(
        core=core,
        start_ns=scenario.start_ns,
        quota=scenario.quota,
        budget_ns=scenario.budget_ns,
        draws=scenario.draws,
        true_rates=scenario.true_rates,
        timing=timing(scenario, calibration),
        keep_transitions=keep_transitions,
    )
    return SimulationResult(
        responses=responses,
        transitions=transitions,
        decisions=core.take_decisions(),
        events=events,
    )
