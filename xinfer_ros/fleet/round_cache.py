# SPDX-License-Identifier: Apache-2.0
"""Rounds of fleets, each simulated once."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.rounds import RoundPool, RoundResult, RoundTask

Key = TypeVar('Key', bound=Hashable)


class RoundCache(Generic[Key]):
    """
    Keeps the rounds of every fleet that was asked for.

    :param starting: called with the number of rounds that are about to be run
    :param done: called with each of them
    """

    def __init__(
        self,
        pool: RoundPool,
        starting: Callable[[int], None],
        done: Callable[[RoundResult], None],
    ) -> None:
        self._pool, self._starting, self._done = pool, starting, done
        self.rounds: dict[Key, list[RoundRecord]] = {}

    def run(
        self, wanted: Sequence[Key], tasks: Callable[[Key], list[RoundTask]]
    ) -> list[list[RoundRecord]]:
        """
        Return the rounds of fleets, in their order; those that are new are run, all at once.

        :param tasks: returns the rounds of one fleet
        """
        new = {want: tasks(want) for want in wanted if want not in self.rounds}
        every = [task for of_fleet in new.values() for task in of_fleet]
        self._starting(len(every))
        results = iter(self._pool.run(every, self._done))
        for want, of_fleet in new.items():
            self.rounds[want] = [next(results).record for _ in of_fleet]
        return [self.rounds[want] for want in wanted]
