# SPDX-License-Identifier: Apache-2.0
"""One round of a simulated fleet, with every random number drawn beforehand."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Rates
from xinfer_ros.sim.workload import Workload
from xinfer_ros.sim.world import World

DRAWS = ('up', 'front_end', 'vit', 'prefill', 'action', 'down', 'jitter')


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """
    The length of a round; only requests that are sent in the window count.

    :param warm_up_s: time that does not count [s]
    :param end_s: when no robot sends any more [s]
    :param period_ms: ``TE`` of every robot [ms]
    """

    warm_up_s: float = 30.0
    end_s: float = 210.0
    period_ms: float = 180.0

    def __post_init__(self) -> None:
        """Refuse a round without a window."""
        if not 0.0 <= self.warm_up_s < self.end_s <= 3600.0:
            raise ConfigError(
                f'a round that ends after {self.end_s} s with {self.warm_up_s} s of warm-up; '
                '0 <= warm-up < end <= 3600 s is needed'
            )
        if not 1.0 <= self.period_ms <= 60_000.0:
            raise ConfigError(f'a minimum period of {self.period_ms} ms; 1 to 60000 is allowed')


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfRobots:
    """
    What robots execute, for a round in robot time.

    :param execution_steps: rows that a chunk of each robot is good for, shape ``(robots,)`` int64
    :param spacing_ns: of rows and control ticks [ns]
    """

    execution_steps: npt.NDArray[np.int64]
    spacing_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    What happens to a fleet whatever its scheduling policy decides.

    :param start_ns: first send of each robot, shape ``(robots,)`` int64 [ns]
    :param quota: requests after which each robot leaves, shape ``(robots,)`` int64
    :param budget_ns: response budgets, shape ``(robots, requests)`` int64 [ns]
    :param draws: delays [ns] and relative work as ``DRAWS``, shape ``(robots, requests, 7)``
    :param true_rates: rates at which units progress, shape as in the calibration
    :param rows: what robots execute; None: only the times of their requests are simulated
    """

    round: Round
    world: World
    start_ns: npt.NDArray[np.int64]
    quota: npt.NDArray[np.int64]
    budget_ns: npt.NDArray[np.int64]
    draws: npt.NDArray[np.float64]
    true_rates: Rates
    rows: RowsOfRobots | None = None

    @property
    def num_robots(self) -> int:
        """Return the number of robots, those of bursts among them."""
        return len(self.start_ns)


def draw_scenario(
    workload: Workload,
    num_robots: int,
    calibration: Calibration,
    *,
    seed: int,
    world: World | None = None,
    round: Round | None = None,
) -> Scenario:
    """Return one round; equal arguments give equal numbers, whatever the scheduling policy."""
    world, round = world or World(), round or Round()
    checked_size(num_robots)
    random = np.random.default_rng(seed)
    requests = int(round.end_s * 1e3 / round.period_ms) + 3
    base = workload.robots or num_robots
    guests = sum(burst.robots for burst in workload.bursts)
    budgets = np.concatenate(
        [
            workload.budgets_ms(count, requests, random)
            for count in (base, guests)
            if count
        ]
    )  # fmt: skip
    start_ms = [first_sends(base, random, world, round)]
    quota = [np.full(base, requests)]
    for burst in workload.bursts:
        start_ms.append(
            burst.at_s * 1e3 + np.arange(burst.robots) / burst.robots * round.period_ms
        )
        quota.append(np.full(burst.robots, burst.responses))
    return Scenario(
        round=round,
        world=world,
        start_ns=(np.concatenate(start_ms) * 1e6).astype(np.int64),
        quota=np.concatenate(quota).astype(np.int64),
        budget_ns=np.round(budgets * 1e6).astype(np.int64),
        draws=draws((base + guests, requests), random, world),
        true_rates=world.true_rates(calibration),
    )


def checked_size(num_robots: int) -> int:
    """
    Return the size of a fleet.

    :raises ConfigError: if none is as large
    """
    if not 1 <= num_robots <= 4096:
        raise ConfigError(f'a fleet of {num_robots} robots; 1 to 4096 are allowed')
    return num_robots


def first_sends(
    robots: int, random: np.random.Generator, world: World, round: Round
) -> npt.NDArray[np.float64]:
    """Return when each robot sends first, within one period, shape ``(robots,)`` [ms]."""
    even, anyhow = np.arange(robots) / robots, random.random(robots)
    sends: npt.NDArray[np.float64] = round.period_ms * (
        (1.0 - world.stagger) * even + world.stagger * anyhow
    )
    return sends


def draws(
    shape: tuple[int, int], random: np.random.Generator, world: World
) -> npt.NDArray[np.float64]:
    """Return delays [ns] and relative works of requests as ``DRAWS``, ``(*shape, 7)``."""
    drawn = random.standard_normal((*shape, len(DRAWS)))

    def lognormal(column: npt.NDArray[np.float64], sd: float) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = np.exp(sd * column - sd * sd / 2.0)
        return values

    for way in (0, 5):
        drawn[..., way] = world.network_ms * 1e6 * lognormal(drawn[..., way], world.network_sd)
    drawn[..., 1] = world.front_end_ms * 1e6 * lognormal(drawn[..., 1], world.front_end_sd)
    drawn[..., 2:5] = lognormal(drawn[..., 2:5], world.work_sd)
    drawn[..., 6] *= world.jitter_ms * 1e6
    return drawn
