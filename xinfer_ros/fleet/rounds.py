# SPDX-License-Identifier: Apache-2.0
"""Simulated rounds, run on all cores of this machine."""

from dataclasses import asdict, dataclass, replace

import numpy as np

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.task_pool import TaskPool
from xinfer_ros.predict.audit import audit
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.metrics import BUDGET, RECEIVED, SENT, Responses
from xinfer_ros.sim.robot_time import RobotTimeWorkload, draw_robot_time
from xinfer_ros.sim.scenario import Round, Scenario, draw_scenario
from xinfer_ros.sim.simulation import SimulationResult, simulate
from xinfer_ros.sim.workload import Workload
from xinfer_ros.sim.world import World

QUANTILES = 201
MAX_REQUESTS = 5_000_000  # half a gigabyte of random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTask:
    """
    One round that is to be simulated.

    :param policy: name under which it is reported, that of the scheduling policy or of a variant
    :param robots: number of robots, those of bursts aside
    :param number: of the round, from 1
    :param audited: whether predictions are compared with the truth, which takes longer
    """

    policy: str
    settings: PolicySettings
    workload: Workload | RobotTimeWorkload
    robots: int
    number: int
    seed: int
    calibration: Calibration
    world: World
    round: Round
    audited: bool = False

    def __post_init__(self) -> None:
        """Refuse a round that would not fit into memory."""
        requests = self.robots * self.round.end_s * 1e3 / self.round.period_ms
        if requests > MAX_REQUESTS:
            raise ConfigError(
                f'a round of {requests:,.0f} requests; at most {MAX_REQUESTS:,} are simulated at '
                'once: take fewer robots, a shorter round or a longer period'
            )

    def scenario(self) -> Scenario:
        """Return the round with as many robots as asked for, whatever the workload's number is."""
        if isinstance(self.workload, RobotTimeWorkload):
            return draw_robot_time(
                self.workload,
                self.robots,
                self.calibration,
                seed=self.seed,
                world=self.world,
                round=self.round,
            )
        return draw_scenario(
            replace(self.workload, robots=None),
            self.robots,
            self.calibration,
            seed=self.seed,
            world=self.world,
            round=self.round,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """
    The latencies of one budget class.

    :param quantiles_ms: evenly from the least to the largest latency, ``QUANTILES`` of them [ms]
    """

    budget_ms: float
    quantiles_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """What a round came to, with the latencies of each budget class."""

    record: RoundRecord
    curves: tuple[LatencyCurve, ...]


def run_round(task: RoundTask) -> RoundResult:
    """
    Simulate a round.

    :raises ConfigError: if the round is too short for any response
    """
    calibration, clock = task.calibration, MonotonicClock()
    scenario = task.scenario()
    begin_ns = clock.now_ns()
    result = simulate(scenario, calibration, task.settings, keep_transitions=task.audited)
    wall_s = max(clock.now_ns() - begin_ns, 1) / 1e9
    try:
        metrics = result.metrics(scenario)
    except ValueError as error:
        raise ConfigError(
            f'{error}: {task.round.warm_up_s:g} s to {task.round.end_s:g} s is too short for '
            f'{task.robots} robots; choose a later end'
        ) from error
    values = asdict(metrics)
    values.pop('mean_ms')
    record = RoundRecord(
        policy=task.policy,
        workload=task.workload.name,
        robots=task.robots,
        round=task.number,
        seed=task.seed,
        calibration=calibration.name,
        mae_ms=_mae_ms(result, calibration) if task.audited else None,
        real_time_factor=task.round.end_s / wall_s,
        **values,
    )
    return RoundResult(record=record, curves=_curves(result.responses, task.round))


def _mae_ms(result: SimulationResult, calibration: Calibration) -> float | None:
    found = audit(result.transitions, calibration)
    return found.mae_ms() if len(found.error_ms) else None


def _curves(responses: Responses, round: Round) -> tuple[LatencyCurve, ...]:
    sent = responses[:, SENT]
    window = responses[(sent >= round.warm_up_s * 1e9) & (sent < round.end_s * 1e9)]
    latency = (window[:, RECEIVED] - window[:, SENT]) / 1e6
    shares = np.linspace(0.0, 1.0, QUANTILES)
    return tuple(
        LatencyCurve(
            budget_ms=float(budget / 1e6),
            quantiles_ms=tuple(np.quantile(latency[window[:, BUDGET] == budget], shares).tolist()),
        )
        for budget in np.unique(window[:, BUDGET])
    )


class RoundPool(TaskPool[RoundTask, RoundResult]):
    """
    Runs rounds in processes of its own; used as a context.

    :param jobs: number of processes, 1 for none but this one, None for one a core
    """

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(run_round, jobs)
