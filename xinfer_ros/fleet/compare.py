# SPDX-License-Identifier: Apache-2.0
"""Every scheduling policy on every workload: capacity, and what one fleet of each sees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.fleet.erc import ErcSearch, find_ercs
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.round_cache import RoundCache
from xinfer_ros.fleet.rounds import RoundPool, RoundResult, RoundTask
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.robot_time import RobotTimeWorkload
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import Workload
from xinfer_ros.sim.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """
    Where policies are compared: one workload on one device.

    :param robots: size of the fleet that every policy serves
    :param criterion: of the capacity
    :param max_robots: largest fleet that the search for the capacity tests
    """

    workload: Workload | RobotTimeWorkload
    calibration: Calibration
    world: World
    robots: int
    criterion: Criterion
    max_robots: int

    def tasks(
        self,
        name: str,
        settings: PolicySettings,
        robots: int,
        *,
        round: Round,
        seeds: Sequence[int],
    ) -> list[RoundTask]:
        """Return the rounds of one fleet under a policy, one a seed."""
        return [
            RoundTask(
                policy=name,
                settings=settings,
                workload=self.workload,
                robots=robots,
                number=number + 1,
                seed=seed,
                calibration=self.calibration,
                world=self.world,
                round=round,
            )
            for number, seed in enumerate(seeds)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """
    A scheduling policy with settings.

    :param name: under which it is reported
    :param settings: makes them for a device
    """

    name: str
    settings: Callable[[Calibration], PolicySettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRecord:
    """
    One policy on one workload. Shares are means over the rounds of one fleet.

    :param erc: capacity, the largest fleet of which every round meets the criterion
    :param first_failing: the least population that fails, None if none did up to the limit
    :param robots: size of the fleet of the other numbers
    :param least_attainment: of the worst round
    :param starvation: share of time in which robots had nothing to execute
    :param starvation_spread: largest less least of the rounds
    :param fairness: Jain's index of update rates, in robot time of executed steps
    """

    policy: str
    workload: str
    calibration: str
    criterion: str
    erc: int
    first_failing: int | None
    robots: int
    rounds: int
    attainment: float
    least_attainment: float
    goodput: float
    starvation: float
    starvation_spread: float
    fast_starvation: float | None
    slow_starvation: float | None
    fairness: float
    steps_per_device_s: float | None
    mirror_error_steps: float | None


Key = tuple[str, str]  # workload, contender


class Comparison:
    """
    Simulates what is compared, each fleet once.

    :param seeds: one of each round
    :param starting: called with the number of rounds that are about to be run
    :param done: called with each of them
    """

    def __init__(
        self,
        pool: RoundPool,
        round: Round,
        seeds: Sequence[int],
        starting: Callable[[int], None],
        done: Callable[[RoundResult], None],
    ) -> None:
        self._round, self._seeds = round, tuple(seeds)
        self._cache: RoundCache[tuple[Key, int]] = RoundCache(pool, starting, done)

    def run(self, arenas: Sequence[Arena], contenders: Sequence[Contender]) -> list[CompareRecord]:
        """Return a record of every contender in every arena, arena by arena."""
        pairs = {(a.workload.name, c.name): (a, c) for a in arenas for c in contenders}

        def simulate(wave: Sequence[tuple[Key, int]]) -> list[list[RoundRecord]]:
            return self._cache.run(wave, lambda want: self._tasks(*pairs[want[0]], want[1]))

        fleets = simulate([(key, arena.robots) for key, (arena, _) in pairs.items()])
        searches = {
            key: (ErcSearch(arena.max_robots), arena.criterion)
            for key, (arena, _) in pairs.items()
        }
        found = find_ercs(searches, simulate, lambda *_: None)
        return [
            _record(arena, key, found[key].erc, found[key].first_failing, rounds)
            for (key, (arena, _)), rounds in zip(pairs.items(), fleets, strict=True)
        ]

    def _tasks(self, arena: Arena, contender: Contender, robots: int) -> list[RoundTask]:
        settings = contender.settings(arena.calibration)
        return arena.tasks(contender.name, settings, robots, round=self._round, seeds=self._seeds)


def _record(
    arena: Arena, key: Key, erc: int, first_failing: int | None, rounds: Sequence[RoundRecord]
) -> CompareRecord:
    def mean(name: str) -> float:
        return float(sum(getattr(r, name) for r in rounds) / len(rounds))

    def mean_if_any(name: str) -> float | None:
        return None if getattr(rounds[0], name) is None else mean(name)

    starved = [r.starvation for r in rounds]
    return CompareRecord(
        policy=key[1],
        workload=key[0],
        calibration=arena.calibration.name,
        criterion=arena.criterion.name,
        erc=erc,
        first_failing=first_failing,
        robots=arena.robots,
        rounds=len(rounds),
        attainment=mean('attainment'),
        least_attainment=min(r.attainment for r in rounds),
        goodput=mean('goodput'),
        starvation=mean('starvation'),
        starvation_spread=max(starved) - min(starved),
        fast_starvation=mean_if_any('fast_starvation'),
        slow_starvation=mean_if_any('slow_starvation'),
        fairness=mean('fairness'),
        steps_per_device_s=mean_if_any('steps_per_device_s'),
        mirror_error_steps=mean_if_any('mirror_error_steps'),
    )
