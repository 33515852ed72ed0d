# SPDX-License-Identifier: Apache-2.0
"""What happens to a simulated fleet of episodes while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass

NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    What is different from some time on.

    :param at_s: when [s]
    :param capacity: share of the cache that is there
    :param robots: size of the fleet; None, or fewer than there are, if it does not change
    :param appended: factor of the tokens that turns append
    """

    at_s: float
    capacity: float = 1.0
    robots: int | None = None
    appended: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainScenario:
    """
    A fleet and its changes.

    :param robots: that each run one episode after another, at the start
    :param ramp_s: within which they start [s]
    :param changes: by time, each in place of the one before
    """

    name: str
    robots: int
    duration_s: float = 1800.0
    ramp_s: float = 60.0
    changes: tuple[Change, ...] = ()

    @property
    def joins_s(self) -> tuple[float, ...]:
        """Return when each robot begins its first episode; a fleet never becomes smaller [s]."""
        joins: list[float] = []
        for at_s, robots in ((0.0, self.robots), *((c.at_s, c.robots) for c in self.changes)):
            count = max((robots or 0) - len(joins), 0)
            joins += [at_s + self.ramp_s * place / count for place in range(count)]
        return tuple(joins)


def steady(robots: int) -> BrainScenario:
    """Return a fleet to which nothing happens."""
    return BrainScenario(name='steady', robots=robots)


DISTURBANCES: Mapping[str, BrainScenario] = {
    scenario.name: scenario
    for scenario in (
        BrainScenario(
            name='capacity',
            robots=32,
            changes=(Change(at_s=600.0, capacity=0.6), Change(at_s=1200.0)),
        ),
        BrainScenario(name='robots', robots=16, changes=(Change(at_s=600.0, robots=48),)),
        BrainScenario(name='longer', robots=32, changes=(Change(at_s=600.0, appended=1.5),)),
        BrainScenario(name='shorter', robots=32, changes=(Change(at_s=600.0, appended=0.5),)),
    )
}
DISTURBANCE_WORDS: Mapping[str, str] = {
    'capacity': 'the cache loses 40 % at 10 min and has them back at 20 min',
    'robots': 'they become 48 at 10 min',
    'longer': 'turns append 1.5 times as much from 10 min on',
    'shorter': 'turns append half as much from 10 min on',
}
