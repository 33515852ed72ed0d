# SPDX-License-Identifier: Apache-2.0
"""Simulates one round with the compiled event kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros import _native
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.native import NativeCore, native_core
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.metrics import Responses, RoundMetrics, round_metrics
from xinfer_ros.sim.robot_time_metrics import RowCounts, with_rows
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
    :param rows: of a round in robot time what each robot executed, shape ``(robots, 7)``; else
        ``(0, 7)``; columns as in ``sim.robot_time_metrics``
    """

    responses: Responses
    transitions: npt.NDArray[np.int64]
    decisions: 'list[_native.DecisionTuple]'
    events: int
    rows: RowCounts

    def metrics(self, scenario: Scenario) -> RoundMetrics:
        """Return what the round came to."""
        found = round_metrics(
            self.responses,
            warm_up_s=scenario.round.warm_up_s,
            end_s=scenario.round.end_s,
            stayed=scenario.quota >= scenario.budget_ns.shape[1],
        )
        if scenario.rows is None:
            return found
        return with_rows(found, self.rows, scenario.rows.execution_steps)


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
    core: NativeCore | None = None,
) -> SimulationResult:
    """
    Simulate one round.

    :param calibration: what the scheduler believes of the device
    :param settings: of the scheduling policy
    :param keep_transitions: keep every start and end of a unit, for the audit
    :param keep_decisions: keep every decision
    :param core: a new one of these settings, for who wants to know more of it; None to make one
    """
    core = core if core is not None else native_core(calibration, settings)
    core.keep_log(keep_decisions)
    responses, transitions, rows, events = _native.simulate(
        core=core,
        start_ns=scenario.start_ns,
        quota=scenario.quota,
        budget_ns=scenario.budget_ns,
        draws=scenario.draws,
        true_rates=settings.device_rates(scenario.true_rates),
        timing=timing(scenario, calibration),
        keep_transitions=keep_transitions,
        robot_time=_rows_of(scenario),
    )
    return SimulationResult(
        responses=responses,
        transitions=transitions,
        decisions=core.take_decisions(),
        events=events,
        rows=rows,
    )


def _rows_of(scenario: Scenario) -> dict[str, Any] | None:
    if scenario.rows is None:
        return None
    return {
        'execution_steps': scenario.rows.execution_steps,
        'spacing_ns': scenario.rows.spacing_ns,
        'count_from_ns': round(scenario.round.warm_up_s * 1e9),
    }
