# SPDX-License-Identifier: Apache-2.0
"""What a benchmark does with each system: fleets, robots, budgets, time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.emulated_robot import first_sends_ns
from xinfer_ros.robot.load_plan import Images, LoadPlan, shares
from xinfer_ros.sim.workload import Workload

MAX_LATENESS_MS = 5.0
MAX_LATENESS_SHARE = 0.1  # of TE
ROBOTS_PER_PROCESS = 16
SPARE_REQUESTS = 3  # of a robot beyond those that the period allows, so that no budget repeats
MAX_PROCESSES = 28  # 32 of a domain find each other on a host; server, command, and two to spare


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """
    How fleets are measured.

    :param robots: sizes of the fleets, in their order
    :param seeds: of the rounds of each fleet
    :param period_ns: ``TE`` [ns]
    :param workload: response budgets
    :param warm_up_s: time that does not count [s]
    :param duration_s: time that does [s]
    :param episodes: what is recorded
    :param keeps_pace: whether robots honour the server's wish for a later request
    :param robots_per_process: robots that share a process of the load generator
    :param start_timeout_s: time for every robot of a fleet to be registered [s]
    :param max_lateness_ms: 99 % quantile of the generator's lateness up to which a result counts,
        None for the usual one
    """

    robots: tuple[int, ...]
    seeds: tuple[int, ...]
    period_ns: int
    workload: Workload
    warm_up_s: float
    duration_s: float
    episodes: tuple[str, ...]
    keeps_pace: bool
    robots_per_process: int = ROBOTS_PER_PROCESS
    start_timeout_s: float = 90.0
    max_lateness_ms: float | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be measured."""
        if self.duration_s <= 0.0:
            raise ConfigError(f'a duration of {self.duration_s:g} s; more than 0 is needed')
        if (processes := -(-max(self.robots) // self.robots_per_process)) > MAX_PROCESSES:
            raise ConfigError(
                f'{max(self.robots)} robots in {processes} processes; on one host {MAX_PROCESSES} '
                'of a ROS domain find each other: raise --robots-per-process'
            )
        if self.workload.bursts:
            raise ConfigError(
                f'workload {self.workload.name}: robots join and leave in it, which only the '
                'simulator does; take another one'
            )

    @property
    def lateness_limit_ms(self) -> float:
        """
        Return how late the load generator may be at the 99 % quantile [ms].

        A late generator is a fleet that asks less, and its own delay adds to every latency. 5 ms
        are half of the 10 ms that the 99 % quantile of a good server stays under, and a tenth of a
        period moves no request beside its neighbour's phase in fleets that fit a device.
        """
        usual_ms = min(MAX_LATENESS_MS, MAX_LATENESS_SHARE * self.period_ns / 1e6)
        return usual_ms if self.max_lateness_ms is None else self.max_lateness_ms

    def load(
        self,
        robots: int,
        seed: int,
        *,
        instance: int,
        episode: int,
        images: Images,
        folder: Path,
    ) -> list[LoadPlan]:
        """
        Return the plan of each process for one round of one fleet; equal seeds give equal plans.

        :param instance: of the run
        :param episode: number of the fleet in the run
        :param folder: that gets the logs
        """
        seconds = self.warm_up_s + self.duration_s
        requests = int(seconds * 1e9 / self.period_ns) + SPARE_REQUESTS
        budgets_ms = self.workload.budgets_ms(robots, requests, np.random.default_rng(seed))
        budgets_ns = np.round(budgets_ms * 1e6).astype(np.int64)
        sends_ns = first_sends_ns(robots, self.period_ns, seed)
        return [
            LoadPlan(
                robots=tuple(share),
                first_sends_ns=tuple(sends_ns[list(share)].tolist()),
                budgets_ns=tuple(tuple(row) for row in budgets_ns[list(share)].tolist()),
                period_ns=self.period_ns,
                duration_ns=round(seconds * 1e9),
                keeps_pace=self.keeps_pace,
                instance=instance,
                episode=episode,
                images=images,
                episodes=self.episodes,
                start_timeout_s=self.start_timeout_s,
                log=str(folder / f'load_{number}.npz'),
            )
            for number, share in enumerate(shares(robots, self.robots_per_process))
        ]
