# SPDX-License-Identifier: Apache-2.0
"""Fleets whose robots execute rows: workloads in robot time, as Armory measures them."""

from dataclasses import dataclass, field, replace

import numpy as np

from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sim.scenario import Round, RowsOfRobots, Scenario, checked_size, draws, first_sends
from xinfer_ros.sim.world import World

FAST_STEPS, SLOW_STEPS = 10, 20
ROW_NS = 33_333_333  # 30 Hz
# Network and noise under which round_robin and armory_edf give the starvation published for them;
# a profile of whole pipelines has no parts to get wrong
WORLD = World(work_sd=0.087, mismatch_sd=0.0, network_ms=6.0, observation_ms=0.0, stagger=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotTimeWorkload:
    """
    Robots that execute a row at each control tick and stand still without one.

    A chunk is good for some steps from where its observation was, the execution horizon: 10 of the
    fast tier, 20 of the slow one. A robot's request stands, with its newest observation.

    :param fast_share: share of the robots that are of the fast tier
    :param least_fast: robots that are so at least
    :param robots: number of robots unless another is asked for
    """

    name: str
    fast_share: float
    least_fast: int = 0
    robots: int | None = 10
    about: str = field(default='', compare=False)

    def execution_steps(self, robots: int) -> tuple[int, ...]:
        """Return the execution horizon of each robot [steps]."""
        fast = min(max(round(self.fast_share * robots), self.least_fast), robots)
        return (FAST_STEPS,) * fast + (SLOW_STEPS,) * (robots - fast)


ROBOT_TIME = {
    workload.name: workload
    for workload in (
        RobotTimeWorkload(
            name='all-fast', fast_share=1.0, about='30 Hz; a chunk is good for 10 rows'
        ),
        RobotTimeWorkload(
            name='one-fast', fast_share=0.0, least_fast=1,
            about='30 Hz; a chunk is good for 10 rows of one robot, for 20 of the others',
        ),
        RobotTimeWorkload(
            name='half-fast', fast_share=0.5,
            about='30 Hz; a chunk is good for 10 rows of every other robot, for 20 of the rest',
        ),
    )
}  # fmt: skip


def draw_robot_time(
    workload: RobotTimeWorkload,
    num_robots: int,
    calibration: Calibration,
    *,
    seed: int,
    world: World = WORLD,
    round: Round | None = None,
) -> Scenario:
    """
    Return one round in robot time; equal arguments give equal numbers.

    The budget of a request is its robot's execution horizon: a chunk for every chunk.
    """
    round = round or Round()
    random = np.random.default_rng(seed)
    steps = np.array(workload.execution_steps(checked_size(num_robots)), dtype=np.int64)
    requests = int(round.end_s * 1e9 / ROW_NS) + 3
    start_ms = first_sends(num_robots, random, world, round)
    return Scenario(
        round=replace(round, period_ms=ROW_NS / 1e6),
        world=world,
        start_ns=(start_ms * 1e6).astype(np.int64),
        quota=np.full(num_robots, requests, dtype=np.int64),
        budget_ns=np.repeat(steps[:, None] * ROW_NS, requests, axis=1),
        draws=draws((num_robots, requests), random, world),
        true_rates=world.true_rates(calibration),
        rows=RowsOfRobots(execution_steps=steps, spacing_ns=ROW_NS),
    )
