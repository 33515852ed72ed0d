# SPDX-License-Identifier: Apache-2.0
"""What robots ask for: the response budget of each request, who joins when, and who leaves."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError

TIGHT_MS, WIDE_MS = 90.0, 400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """
    Robots that join for a while.

    :param at_s: when they send first, evenly over one period [s]
    :param robots: how many
    :param responses: after which each of them leaves
    """

    at_s: float
    robots: int
    responses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    A cycle of response budgets that each robot runs through, response by response.

    Robots' places in the cycle are stratified: it is cut into as many parts as there are robots,
    and each robot begins at a random place of its part, in random order.

    :param cycle_ms: response budgets of one cycle [ms]
    :param bursts: robots beside those that are asked for
    :param robots: number of robots if it is fixed, else None
    """

    name: str
    cycle_ms: tuple[float, ...]
    bursts: tuple[Burst, ...] = ()
    robots: int | None = None
    about: str = field(default='', compare=False)

    def __post_init__(self) -> None:
        """Refuse a cycle that is none."""
        if not self.cycle_ms or not all(0.0 < budget <= 60_000.0 for budget in self.cycle_ms):
            raise ConfigError(
                f'workload {self.name}: response budgets must be more than 0 and at most 60000 ms'
            )

    def budgets_ms(
        self, robots: int, requests: int, random: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """Return the budget of each request, shape ``(robots, requests)`` [ms]."""
        length = len(self.cycle_ms)
        part = random.permutation(robots) + random.random(robots)
        place = np.floor(part * length / robots).astype(np.int64)
        index = (place[:, None] + np.arange(requests)[None, :]) % length
        budgets: npt.NDArray[np.float64] = np.asarray(self.cycle_ms)[index]
        return budgets


def _phases(*parts: tuple[float, int]) -> tuple[float, ...]:
    return tuple(budget for budget, count in parts for _ in range(count))


_ALTERNATING = _phases((TIGHT_MS, 14), (WIDE_MS, 14))
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            name='alternating', cycle_ms=_ALTERNATING,
            about='14 responses with 90 ms, 14 with 400 ms',
        ),
        Workload(
            name='bursty', cycle_ms=_ALTERNATING, robots=12,
            bursts=tuple(Burst(at_s=at, robots=6, responses=55) for at in (50.0, 110.0, 170.0)),
            about='12 alternating robots; three times 6 more join and leave after 55 responses',
        ),
        Workload(
            name='multiple',
            cycle_ms=_phases((80.0, 28), (120.0, 28), (200.0, 28), (300.0, 28), (400.0, 28)),
            about='five budgets in turn, 28 responses each',
        ),
        Workload(
            name='parcel', cycle_ms=_phases((TIGHT_MS, 53), (WIDE_MS, 32)),
            about='53 responses with 90 ms (grasp and place), 32 with 400 ms (transfer)',
        ),
    )
}  # fmt: skip


def make_workload(name: str, trace_ms: Sequence[float] = ()) -> Workload:
    """
    Return a workload: by name, ``constant:MS``, or ``trace`` with a recorded budget sequence.

    :raises ConfigError: if there is none of this name
    """
    if name in WORKLOADS:
        return WORKLOADS[name]
    kind, _, rest = name.partition(':')
    if kind == 'constant':
        try:
            return Workload(name=name, cycle_ms=(float(rest),), about='one budget')
        except ValueError:
            raise ConfigError(f'workload {name}: constant:MS is needed, as constant:150') from None
    if kind == 'trace' and trace_ms:
        return Workload(name=name, cycle_ms=tuple(trace_ms), about='a recorded budget sequence')
    raise ConfigError(
        f'workload {name} is not known; known: {", ".join(WORKLOADS)}, constant:MS, trace:FILE'
    )
