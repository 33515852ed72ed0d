# SPDX-License-Identifier: Apache-2.0
"""The search for settings that let a device serve more robots of one workload."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.fleet.compare import Arena
from xinfer_ros.fleet.erc import ErcSearch, find_ercs
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.round_cache import RoundCache
from xinfer_ros.fleet.rounds import RoundPool, RoundResult, RoundTask
from xinfer_ros.fleet.tune_space import Knob, knobs
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.scenario import Round

GAIN = 0.002  # of the margin, below which a change is noise
FRESH = 1000  # between the seeds that are tuned on and those that judge
CHECKING = 1.3  # the last searches take so much of the time of the first


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRecord:
    """
    What tuning one policy came to, judged on seeds that it was not tuned on.

    :param changes: settings that differ from the defaults, ``KEY=VALUE`` each
    :param erc_default: capacity with the defaults
    :param erc: capacity with the changes; without any, that of the defaults
    :param robots: size of the fleet of the numbers below
    :param margin: by how much its worst round meets the criterion, below 0 if it does not
    :param tried: settings that were tried
    :param max_robots: largest fleet that was tested
    """

    policy: str
    workload: str
    calibration: str
    criterion: str
    changes: tuple[str, ...]
    erc_default: int
    erc: int
    robots: int
    margin: float
    attainment: float
    goodput: float
    starvation: float
    fairness: float
    tried: int
    max_robots: int


_Fleet = tuple[PolicySettings, int, int]  # its size, and what is added to the seeds


@dataclass(slots=True)
class _Climb:
    """One policy's search: what is best so far, and the fleet that it is tried on."""

    settings: PolicySettings
    robots: int
    margin: float
    order: list[Knob]
    idle: int = 0  # knobs in a row that gained nothing
    next: int = 0
    tried: int = 0

    @property
    def is_over(self) -> bool:
        return self.idle >= len(self.order)


class Tuner:
    """
    Climbs, policy by policy and setting by setting, while there is time.

    Every policy starts with its defaults and the least fleet that they do not serve. One setting
    is changed at a time; a change that meets the criterion better, in the worst round, stays, and
    when the fleet is served the next larger one is tried. What came out is then judged on rounds
    that it was not tuned on, and the defaults stay where it gains nothing.

    :param robots: the fleet that is tried; None for the largest that can be served
    :param round: its length
    :param seeds: of the rounds that are tuned on
    :param starting: called with the number of rounds that are about to be run
    :param done: called with each of them
    """

    def __init__(
        self,
        pool: RoundPool,
        arena: Arena,
        *,
        robots: int | None,
        round: Round,
        seeds: Sequence[int],
        clock: Clock,
        starting: Callable[[int], None],
        done: Callable[[RoundResult], None],
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._arena, self._robots = arena, robots
        self._round, self._seeds, self._clock = round, tuple(seeds), clock
        self._tell = tell
        self._cache: RoundCache[_Fleet] = RoundCache(pool, starting, done)

    def run(
        self, policies: Sequence[PolicySettings], minutes: float
    ) -> list[tuple[TuneRecord, PolicySettings]]:
        """
        Return a record of every policy, the best first, with the settings that it is of.

        :param policies: their defaults
        :param minutes: time after which the search ends and the judging begins [min]
        """
        begin_ns = self._clock.now_ns()
        ercs = self._ercs(policies)
        took_ns = self._clock.now_ns() - begin_ns
        end_ns = begin_ns + round(minutes * 60e9) - round(CHECKING * took_ns)
        climbs = [self._start(settings, ercs[settings]) for settings in policies]
        for climb in self._turns(climbs, end_ns):
            self._step(climb)
        return self._judge(policies, climbs, ercs)

    def _start(self, settings: PolicySettings, erc: int) -> _Climb:
        robots = self._robots or min(erc + 1, self._arena.max_robots)
        found = knobs(settings.name)
        order = [found[i] for i in np.random.default_rng(self._seeds[0]).permutation(len(found))]
        margin = self._margins([settings], robots)[0]
        return _Climb(settings=settings, robots=robots, margin=margin, order=order)

    def _turns(self, climbs: Sequence[_Climb], end_ns: int) -> Iterator[_Climb]:
        """Yield the policies in turn, each for one setting, while there is time and hope."""
        while any(not climb.is_over for climb in climbs):
            for climb in climbs:
                if self._clock.now_ns() >= end_ns:
                    return
                if not climb.is_over:
                    yield climb

    def _step(self, climb: _Climb) -> None:
        knob = climb.order[climb.next % len(climb.order)]
        climb.next += 1
        found = knob.neighbours(climb.settings, self._arena.calibration)
        climb.tried += len(found)
        margins = self._margins(found, climb.robots)
        best = max(range(len(found)), key=margins.__getitem__, default=None)
        if best is None or margins[best] <= climb.margin + GAIN:
            climb.idle += 1
            return
        climb.settings, climb.margin, climb.idle = found[best], margins[best], 0
        while self._robots is None and climb.margin >= 0 and climb.robots < self._arena.max_robots:
            climb.robots += 1
            climb.margin = self._margins([climb.settings], climb.robots)[0]
        self._tell(
            f'{climb.settings.name}: {knob.name} = {text(getattr(climb.settings, knob.name))}; '
            f'{climb.robots} robots by {100 * climb.margin:+.1f} points'
        )

    def _margins(self, settings: Sequence[PolicySettings], robots: int) -> list[float]:
        found = self._simulate([(each, robots) for each in settings], fresh=False)
        return [self._arena.criterion.margin(rounds) for rounds in found]

    def _judge(
        self,
        policies: Sequence[PolicySettings],
        climbs: Sequence[_Climb],
        ercs: dict[PolicySettings, int],
    ) -> list[tuple[TuneRecord, PolicySettings]]:
        """Compare defaults and what was found on fresh rounds."""
        pairs = [(d, climb.settings) for d, climb in zip(policies, climbs, strict=True)]
        both = list(dict.fromkeys(each for pair in pairs for each in pair))
        ercs = ercs | self._ercs([each for each in both if each not in ercs])
        robots = self._robots or max(*ercs.values(), 1)
        at = [
            (each, climb.robots)
            for pair, climb in zip(pairs, climbs, strict=True)
            for each in pair
        ]
        self._simulate([*at, *((each, robots) for each in both)], fresh=True)

        def rank(settings: PolicySettings, fleet: int) -> tuple[int, float]:
            erc = 0 if self._robots else ercs[settings]  # a given fleet is all that counts
            return erc, self._fresh_margin(settings, fleet)

        found = []
        for (default, tuned), climb in zip(pairs, climbs, strict=True):
            erc, margin = rank(default, climb.robots)
            chosen = tuned if rank(tuned, climb.robots) > (erc, margin + GAIN) else default
            found.append((self._record(default, chosen, ercs, robots, climb.tried), chosen))
        return sorted(found, key=lambda pair: rank(pair[1], robots), reverse=True)

    def _fresh_margin(self, settings: PolicySettings, robots: int) -> float:
        return self._arena.criterion.margin(self._cache.rounds[settings, robots, FRESH])

    def _record(
        self,
        default: PolicySettings,
        chosen: PolicySettings,
        ercs: dict[PolicySettings, int],
        robots: int,
        tried: int,
    ) -> TuneRecord:
        rounds = self._cache.rounds[chosen, robots, FRESH]

        def mean(name: str) -> float:
            return float(sum(getattr(r, name) for r in rounds) / len(rounds))

        return TuneRecord(
            policy=default.name,
            workload=self._arena.workload.name,
            calibration=self._arena.calibration.name,
            criterion=self._arena.criterion.name,
            changes=changed(default, chosen),
            erc_default=ercs[default],
            erc=ercs[chosen],
            robots=robots,
            margin=self._fresh_margin(chosen, robots),
            attainment=mean('attainment'),
            goodput=mean('goodput'),
            starvation=mean('starvation'),
            fairness=mean('fairness'),
            tried=tried,
            max_robots=self._arena.max_robots,
        )

    def _ercs(self, policies: Sequence[PolicySettings]) -> dict[PolicySettings, int]:
        """Return capacities on fresh rounds."""
        criterion = self._arena.criterion
        searches = {each: (ErcSearch(self._arena.max_robots), criterion) for each in policies}
        found = find_ercs(searches, lambda wave: self._simulate(wave, fresh=True), lambda *_: None)
        return {settings: record.erc for settings, record in found.items()}

    def _simulate(
        self, wave: Sequence[tuple[PolicySettings, int]], *, fresh: bool
    ) -> list[list[RoundRecord]]:
        """Return the rounds of fleets."""
        offset = FRESH if fresh else 0
        return self._cache.run([(*want, offset) for want in wave], self._tasks)

    def _tasks(self, fleet: _Fleet) -> list[RoundTask]:
        settings, robots, offset = fleet
        seeds = [seed + offset for seed in self._seeds]
        return self._arena.tasks(settings.name, settings, robots, round=self._round, seeds=seeds)


def changed(default: PolicySettings, chosen: PolicySettings) -> tuple[str, ...]:
    """Return the settings that differ, ``KEY=VALUE`` each, as a server takes them."""
    return tuple(
        f'{field.name}={text(getattr(chosen, field.name))}'
        for field in fields(chosen)
        if getattr(chosen, field.name) != getattr(default, field.name)
    )


def text(value: object) -> str:
    """Return a setting's value as it is written after the equals sign."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ','.join(str(part) for part in value)
    return f'{value:.6g}' if isinstance(value, float) else str(value)
