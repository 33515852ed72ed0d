# SPDX-License-Identifier: Apache-2.0
"""What robots ask for: the response budget of each request, who joins when, and who leaves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.budget_sequence import MAX_BUDGET_MS, parse_budget_sequences
from xinfer_ros.errors import ConfigError

TIGHT_MS, WIDE_MS = 90.0, 400.0
RECORDED = 'recorded'
RECORDED_ABOUT = 'each robot plays one of the shipped sequences, made of recorded gripper switches'


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
    Cycles of response budgets that robots run through, response by response.

    Robot ``i`` runs through cycle ``i`` modulo their number, over and over. The places at which
    robots begin are stratified: a cycle is cut into as many parts as there are robots, and each
    robot begins at a random place of its part, in random order.

    :param cycles_ms: response budgets of each cycle, most often of one [ms]
    :param bursts: robots beside those that are asked for
    :param robots: number of robots if it is fixed, else None
    """

    name: str
    cycles_ms: tuple[tuple[float, ...], ...]
    bursts: tuple[Burst, ...] = ()
    robots: int | None = None
    about: str = field(default='', compare=False)

    def __post_init__(self) -> None:
        """Refuse a cycle that is none."""
        budgets_ms = [budget_ms for cycle_ms in self.cycles_ms for budget_ms in cycle_ms]
        whole = self.cycles_ms and all(self.cycles_ms)
        if not whole or not all(0.0 < budget_ms <= MAX_BUDGET_MS for budget_ms in budgets_ms):
            raise ConfigError(
                f'workload {self.name}: response budgets must be more than 0 and at most '
                f'{MAX_BUDGET_MS:g} ms'
            )

    def budgets_ms(
        self, robots: int, requests: int, random: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """Return the budget of each request, shape ``(robots, requests)`` [ms]."""
        part = random.permutation(robots) + random.random(robots)
        budgets = np.empty((robots, requests))
        for robot in range(robots):
            cycle_ms = np.asarray(self.cycles_ms[robot % len(self.cycles_ms)])
            place = int(np.floor(part[robot] * len(cycle_ms) / robots))
            budgets[robot] = cycle_ms[(place + np.arange(requests)) % len(cycle_ms)]
        return budgets


def _phases(*parts: tuple[float, int]) -> tuple[float, ...]:
    return tuple(budget for budget, count in parts for _ in range(count))


_ALTERNATING = (_phases((TIGHT_MS, 14), (WIDE_MS, 14)),)
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            name='alternating', cycles_ms=_ALTERNATING,
            about='14 responses with 90 ms, 14 with 400 ms',
        ),
        Workload(
            name='bursty', cycles_ms=_ALTERNATING, robots=12,
            bursts=tuple(Burst(at_s=at, robots=6, responses=55) for at in (50.0, 110.0, 170.0)),
            about='12 alternating robots; three times 6 more join and leave after 55 responses',
        ),
        Workload(
            name='multiple',
            cycles_ms=(_phases((80.0, 28), (120.0, 28), (200.0, 28), (300.0, 28), (400.0, 28)),),
            about='five budgets in turn, 28 responses each',
        ),
        Workload(
            name='parcel', cycles_ms=(_phases((TIGHT_MS, 53), (WIDE_MS, 32)),),
            about='53 responses with 90 ms (grasp and place), 32 with 400 ms (transfer)',
        ),
    )
}  # fmt: skip


def recorded_workload() -> Workload:
    """
    Return the workload of the shipped budget sequences, made of recorded episodes.

    :raises ConfigError: if they are not there
    """
    try:
        data = resources.files('xinfer_ros.sim') / 'data' / f'{RECORDED}.json'
        sequences = parse_budget_sequences(data.read_text())
    except OSError as error:
        raise ConfigError(
            f'workload {RECORDED}: its data are missing: {error.strerror}'
        ) from error
    return Workload(
        name=RECORDED,
        cycles_ms=tuple(sequence.budgets_ms for sequence in sequences.sequences),
        about=RECORDED_ABOUT,
    )


def make_workload(name: str, traces_ms: Sequence[Sequence[float]] = ()) -> Workload:
    """
    Return a workload: by name, ``constant:MS``, or ``trace`` with recorded budget sequences.

    :raises ConfigError: if there is none of this name
    """
    if name == RECORDED:
        return recorded_workload()
    if name in WORKLOADS:
        return WORKLOADS[name]
    kind, _, rest = name.partition(':')
    if kind == 'constant':
        try:
            return Workload(name=name, cycles_ms=((float(rest),),), about='one budget')
        except ValueError:
            raise ConfigError(f'workload {name}: constant:MS is needed, as constant:150') from None
    if kind == 'trace' and traces_ms:
        cycles_ms = tuple(map(tuple, traces_ms))
        return Workload(name=name, cycles_ms=cycles_ms, about='recorded budget sequences')
    raise ConfigError(
        f'workload {name} is not known; known: {", ".join(WORKLOADS)}, {RECORDED}, constant:MS, '
        'trace:FILE'
    )
