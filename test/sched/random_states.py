# SPDX-License-Identifier: Apache-2.0
"""Random devices and sequences of events that bring scheduler cores into many states."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from xinfer_ros.predict.calibration import MAX_BATCH, Calibration
from xinfer_ros.predict.rate_table import Demands
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.decision import Verdict

MS = 1_000_000


def random_device(random: Random) -> Calibration:
    """Return a device with random demands, bounds, times and batch columns."""

    def three(low: float, high: float) -> tuple[float, float, float]:
        return random.uniform(low, high), random.uniform(low, high), random.uniform(low, high)

    demands = Demands(
        bound=(random.randint(1, 4), random.randint(1, 6), random.randint(1, 6)),
        demand=three(0.05, 0.9),
        sharpness=random.uniform(1.0, 4.0),
        contention=random.choice([0.0, random.uniform(0.0, 0.1)]),
        same_stage_contention=random.choice([0.0, random.uniform(0.0, 0.3)]),
        exponent=three(0.5, 1.5),
    )

    def batch() -> tuple[float, ...]:
        size = random.choice([1, 1, random.randint(2, MAX_BATCH)])
        return (1.0, *sorted(random.uniform(1.0, size) for _ in range(size - 1)))

    return Calibration(
        name='random',
        device='none',
        model='none',
        source='drawn',
        work_ms=three(1.0, 20.0),
        overhead_ms=three(0.0, 3.0),
        output_ms=random.uniform(0.0, 3.0),
        front_end_ms=random.uniform(0.0, 12.0),
        reserved_ms=random.uniform(0.0, 8.0),
        rates=demands.rates(),
        batch_work=(batch(), batch(), batch()),
    )


@dataclass(kw_only=True)
class Robot:
    """What the events know of a robot: a request that is prepared, and when its last arrived."""

    announced: tuple[int, int] | None = None  # arrival, budget
    last_arrival_ns: int = -1
    live: set[int] = field(default_factory=set)
    executed: int = 0


class RandomFleet:
    """
    Draws one event after the other and tells several cores the same; all must answer the same.

    :param robots: their number, drawn by default
    :param states: dispatches, each of them of another state
    :param batches: units that held more than one request
    :param verdicts: how often each was given
    """

    def __init__(
        self,
        random: Random,
        device: Calibration,
        cores: list[SchedulerCore],
        robots: int | None = None,
    ) -> None:
        self.states = 0
        self.batches = 0
        self.verdicts: Counter[Verdict] = Counter()
        self._random = random
        self._device = device
        self._cores = cores
        self._now_ns = random.choice([0, random.randrange(10**15)])
        self._ending = random.uniform(0.1, 0.4)  # share of events that end a unit: few jam it
        count = random.choice([random.randint(1, 12), random.randint(12, 30)])
        self._robots = [Robot() for _ in range(robots or count)]
        self._budgets_ns = [
            round(random.uniform(0.7, 12.0) * device.alone_ms * MS)
            for _ in range(random.randint(1, 4))
        ]
        self._period_ns = round(random.uniform(1.0, 6.0) * device.alone_ms * MS)
        self._owner: dict[int, int] = {}  # robot of each live request
        self._units: dict[int, tuple[int, ...]] = {}  # keys, by number
        self._last_key = 0
        for core in cores:
            core.keep_log(True)

    def run(self, events: int) -> None:
        """Let so many things happen."""
        for _ in range(events):
            self._pass_time()
            self._event()
            self._dispatch()

    def _same(self, call: Callable[[SchedulerCore], Any]) -> Any:
        """Return what every core answers."""
        answers = [call(core) for core in self._cores]
        for other in answers[1:]:
            assert other == answers[0]
        return answers[0]

    def _pass_time(self) -> None:
        random = self._random
        kind = random.random()
        if kind < 0.7:
            self._now_ns += round(random.uniform(0.0, 3.0) * MS)
        elif kind < 0.85:
            self._now_ns += round(random.expovariate(0.1) * MS)
        elif kind < 0.86:
            self._now_ns += round(random.uniform(50.0, 800.0) * MS)

    def _event(self) -> None:
        kind = self._random.random()
        if kind < self._ending:
            self._complete()
        elif kind < 0.65:
            self._announce()
        elif kind < 0.92:
            self._submit()
        elif kind < 0.94:
            self._cancel()
        elif kind < 0.95:
            self._withdraw()
        elif kind < 0.99:
            self._set_budget()

    def _announce(self) -> None:
        number = self._random.randrange(len(self._robots))
        robot = self._robots[number]
        superseding = self._random.random() < 0.1
        arrival_ns = self._now_ns - self._random.choice([0, 0, self._random.randrange(MS)])
        if robot.announced or (robot.live and not superseding):
            return
        if arrival_ns <= robot.last_arrival_ns:  # a robot never sends twice at once
            return
        robot.last_arrival_ns = arrival_ns
        self._observe(number)
        budget_ns = self._random.choice(self._budgets_ns)
        robot.announced = arrival_ns, budget_ns
        for core in self._cores:
            core.announce(
                now_ns=self._now_ns,
                robot=number,
                arrival_ns=arrival_ns,
                budget_ns=budget_ns,
                period_ns=self._period_ns,
            )

    def _observe(self, number: int) -> None:
        """Let a robot tell of its queue, sometimes; now and then it is another robot."""
        random, robot = self._random, self._robots[number]
        robot.executed = random.choice([robot.executed + random.randrange(12)] * 9 + [0])
        sight = {
            'executed_steps': robot.executed,
            'leftover_steps': random.randrange(16),
            'horizon_steps': random.choice([0, 10, 20]),
            'spacing_ns': random.choice([0, 33 * MS]),
        }
        if random.random() < 0.8:
            for core in self._cores:
                core.observe(now_ns=self._now_ns, robot=number, **sight)

    def _submit(self) -> None:
        announced = [n for n, robot in enumerate(self._robots) if robot.announced]
        if not announced:
            return
        number = self._random.choice(announced)
        robot = self._robots[number]
        assert robot.announced is not None
        arrival_ns, budget_ns = robot.announced
        robot.announced = None
        self._last_key += 1
        robot.live.add(self._last_key)
        self._owner[self._last_key] = number
        for core in self._cores:
            core.submit(
                now_ns=self._now_ns,
                key=self._last_key,
                robot=number,
                arrival_ns=arrival_ns,
                budget_ns=budget_ns,
                reserved_ns=round(self._device.reserved_ms * MS),
                period_ns=self._period_ns,
            )

    def _forget(self, key: int) -> int:
        number = self._owner.pop(key)
        self._robots[number].live.remove(key)
        return number

    def _complete(self) -> None:
        if self._units:
            number = self._random.choice(list(self._units))
            del self._units[number]
            self._answer(lambda core: list(core.complete(self._now_ns, number)))
            self._same(lambda core: list(core.correction))
            self._same(lambda core: core.mirror_error)
            self._same(lambda core: core.counters())

    def _answer(self, ended: Callable[[SchedulerCore], list[int]]) -> None:
        for key in self._same(ended):
            robot = self._forget(key)
            self._same(lambda core, robot=robot: core.pace_ns(robot))

    def _some_key(self) -> int:
        return self._random.choice([*self._owner, self._last_key + 1])

    def _cancel(self) -> None:
        key = self._some_key()
        if self._same(lambda core: core.cancel(self._now_ns, key)):
            self._forget(key)

    def _withdraw(self) -> None:
        if self._units:
            number = self._random.choice(list(self._units))
            for key in self._units.pop(number):
                self._forget(key)
            for core in self._cores:
                core.withdraw(self._now_ns, number)

    def _set_budget(self) -> None:
        key, budget_ns = self._some_key(), self._random.choice(self._budgets_ns)
        for core in self._cores:
            core.set_budget(key, budget_ns)

    def _dispatch(self) -> None:
        self.states += 1
        self._answer(lambda core: list(core.release(self._now_ns)))
        units = self._same(
            lambda core: [(n, s, tuple(keys)) for n, s, keys in core.dispatch(self._now_ns)]
        )
        for number, _, keys in units:
            self._units[number] = keys
            self.batches += len(keys) > 1
        self._same(lambda core: core.num_protected())
        for decision in self._same(lambda core: list(core.take_decisions())):
            self.verdicts[Verdict(decision[3])] += 1
