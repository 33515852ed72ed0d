# SPDX-License-Identifier: Apache-2.0
"""The search for the effective robot capacity, which a lucky population does not fool."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.fleet.records import ErcRecord, RoundRecord

STEP = 4
MAX_POPULATION = 4096
Key = TypeVar('Key', bound=Hashable)
Simulate = Callable[[Sequence[tuple[Key, int]]], Sequence[Sequence[RoundRecord]]]


class ErcSearch:
    """
    Chooses the populations to test, and tells the capacity when it knows enough.

    It goes up by ``STEP`` until a population fails. Then it tests the ``STEP`` populations below
    the least that has failed, again and again until they all pass: a population that passes by
    luck above one that fails does not count.

    :param max_robots: largest population tested
    :raises ConfigError: if that is out of range
    """

    def __init__(self, max_robots: int) -> None:
        if not 1 <= max_robots <= MAX_POPULATION:
            raise ConfigError(
                f'a search up to {max_robots} robots; 1 to {MAX_POPULATION} are allowed'
            )
        self._max_robots = max_robots
        self._passed: dict[int, bool] = {}

    @property
    def passing(self) -> tuple[int, ...]:
        """Return the populations tested that pass."""
        return tuple(robots for robots in sorted(self._passed) if self._passed[robots])

    @property
    def failing(self) -> tuple[int, ...]:
        """Return the populations tested that fail."""
        return tuple(robots for robots in sorted(self._passed) if not self._passed[robots])

    @property
    def first_failing(self) -> int | None:
        """Return the least population that fails, None if none does."""
        return min(self.failing, default=None)

    @property
    def erc(self) -> int:
        """Return the capacity as far as it is known; it holds once nothing is wanted any more."""
        return max((robots for robots in self.passing if robots < self._below), default=0)

    def wanted(self) -> tuple[int, ...]:
        """Return the populations to test next, rising; empty when the search is over."""
        if not self.failing:
            tested = max(self._passed, default=0)
            if tested < self._max_robots:
                return (min(tested + STEP, self._max_robots),)
        near = range(max(self._below - STEP, 1), self._below)
        return tuple(robots for robots in near if robots not in self._passed)

    @property
    def _below(self) -> int:
        """Return the least population that is known not to count."""
        return min(self.first_failing or self._max_robots + 1, self._max_robots + 1)

    def limit(self, max_robots: int) -> None:
        """Test and count no population larger than this any more."""
        self._max_robots = min(self._max_robots, max_robots)

    def take(self, robots: int, passed: bool) -> None:
        """Take in whether a population passes."""
        self._passed[robots] = passed


def find_ercs(
    searches: Mapping[Key, tuple[ErcSearch, Criterion]],
    simulate: 'Simulate[Key]',
    tell: Callable[[Key, int, Sequence[RoundRecord], Sequence[str]], None],
) -> dict[Key, ErcRecord]:
    """
    Carry searches out, side by side.

    :param searches: what is searched for, each with its criterion
    :param simulate: returns the rounds of the fleets asked for, in their order; none of a fleet
        that could not be measured, whereupon no fleet as large is tested
    :param tell: called with each population that was tested, its rounds, and what they miss
    """
    rounds: dict[tuple[Key, int], Sequence[RoundRecord]] = {}
    while wave := [(key, n) for key, (search, _) in searches.items() for n in search.wanted()]:
        for (key, robots), found in zip(wave, simulate(wave), strict=True):
            search, criterion = searches[key]
            if not found:
                search.limit(robots - 1)
                continue
            faults = criterion.faults(found)
            search.take(robots, not faults)
            rounds[key, robots] = found
            tell(key, robots, found, faults)
    return {
        key: _record(search, criterion, rounds, key)
        for key, (search, criterion) in searches.items()
    }


def _record(
    search: ErcSearch,
    criterion: Criterion,
    rounds: Mapping[tuple[Key, int], Sequence[RoundRecord]],
    key: Key,
) -> ErcRecord:
    best = rounds.get((key, search.erc), ())
    failed = rounds.get((key, search.first_failing or 0), ())
    first = next(found for (other, _), found in rounds.items() if other == key)[0]

    def least(name: str) -> float | None:
        return min((getattr(r, name) for r in best), default=None)

    def most(name: str) -> float | None:
        return max((getattr(r, name) for r in best), default=None)

    return ErcRecord(
        policy=first.policy,
        workload=first.workload,
        criterion=criterion.name,
        erc=search.erc,
        first_failing=search.first_failing,
        rounds=len(next(iter(rounds.values()))),
        calibration=first.calibration,
        attainment=least('attainment'),
        tight_attainment=least('tight_attainment'),
        tight_p999_ms=most('tight_p999_ms'),
        far_late=most('far_late'),
        min_rate_hz=least('min_rate_hz'),
        min_rate_share=least('min_rate_share'),
        mean_rate_hz=sum(r.mean_rate_hz for r in best) / len(best) if best else None,
        passing=search.passing,
        failing=search.failing,
        faults=tuple(criterion.faults(failed)) if failed else (),
    )
