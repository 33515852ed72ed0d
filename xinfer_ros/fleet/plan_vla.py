# SPDX-License-Identifier: Apache-2.0
"""How many robots a device keeps on time, by bounds that need no simulation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sched.settings_group import (
    DynamicBatchSettings,
    RobionSettings,
    RoundRobinSettings,
)
from xinfer_ros.sim.robot_time import RobotTimeWorkload
from xinfer_ros.sim.workload import Workload

# A request waits for the group before it, then passes with its own: one after the other, or one
# round for Context and one for Action
GROUP_PASSES, ROUND_PASSES = 2, 3
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """
    One way to keep a device busy.

    :param latency_ms: of a request, from its first stage to its output [ms]
    :param per_ms: responses [1/ms]
    """

    latency_ms: float
    per_ms: float


def operating_points(
    settings: PolicySettings, calibration: Calibration
) -> tuple[OperatingPoint, ...]:
    """Return the ways in which a scheduling policy can keep a device busy."""
    if isinstance(settings, RobionSettings):
        groups = (replace(settings, group=n) for n in range(1, settings.group + 1))
        return tuple(_group_point(s, calibration, s.group, ROUND_PASSES) for s in groups)
    if isinstance(settings, DynamicBatchSettings | RoundRobinSettings):
        batches = (replace(settings, max_batch=n) for n in range(1, settings.max_batch + 1))
        return tuple(_group_point(s, calibration, s.max_batch, GROUP_PASSES) for s in batches)
    alone = OperatingPoint(latency_ms=calibration.alone_ms, per_ms=1.0 / calibration.alone_ms)
    return alone, *_stage_points(settings, calibration)


def _group_point(
    settings: PolicySettings, calibration: Calibration, size: int, passes: int
) -> OperatingPoint:
    per_ms = settings.capacity_per_ms(calibration)
    latency_ms = passes * size / per_ms + calibration.output_ms
    return OperatingPoint(latency_ms=latency_ms, per_ms=per_ms)


def _stage_points(settings: PolicySettings, calibration: Calibration) -> Iterator[OperatingPoint]:
    """Yield a point for each number of units that run at once and size of their batches."""
    limits = settings.limits(calibration)
    most = [len(batch) if settings.batches else 1 for batch in calibration.batch_work]
    for counts in product(*(range(1, limits[stage] + 1) for stage in Stage)):
        rates = [calibration.table.rate_without(stage, counts) for stage in Stage]
        for sizes in product(*(range(1, size + 1) for size in most)):
            held = sum(count * size for count, size in zip(counts, sizes, strict=True))
            if settings.max_held and held > max(settings.max_held, len(Stage)):
                continue
            took_ms = [
                calibration.overhead_ms[stage]
                + calibration.work_ms[stage]
                * calibration.batch_work[stage][sizes[stage] - 1]
                / rates[stage]
                for stage in Stage
            ]
            yield OperatingPoint(
                latency_ms=sum(took_ms) + calibration.output_ms,
                per_ms=min(counts[s] * sizes[s] / took_ms[s] for s in Stage),
            )


def _best(points: Sequence[OperatingPoint]) -> list[OperatingPoint]:
    """Return those points that no quicker one beats, nor a mixture of two others."""
    best: list[OperatingPoint] = []
    for point in sorted(points, key=lambda p: (p.latency_ms, -p.per_ms)):
        if best and point.per_ms <= best[-1].per_ms:
            continue
        while len(best) > 1 and _gain(best[-2], best[-1]) <= _gain(best[-2], point):
            best.pop()
        best.append(point)
    return best


def _gain(quick: OperatingPoint, slow: OperatingPoint) -> float:
    """Return how much more a slower point gives for its latency."""
    return (slow.per_ms - quick.per_ms) / (slow.latency_ms - quick.latency_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMix:
    """
    The response budgets of a fleet.

    :param cycles_ms: as in ``Workload``: robot ``i`` runs through cycle ``i`` modulo their number
    """

    name: str
    cycles_ms: tuple[tuple[float, ...], ...]

    @property
    def shares(self) -> dict[float, float]:
        """Return the share of the responses of each budget, the tightest first."""
        found: Counter[float] = Counter()
        for cycle_ms in self.cycles_ms:
            for budget_ms in cycle_ms:
                found[budget_ms] += 1.0 / len(cycle_ms) / len(self.cycles_ms)  # type: ignore
        return dict(sorted(found.items()))

    def interval_ms(self, period_ms: float, thinking_ms: float = 0.0) -> float:
        """
        Return how far apart the requests of a robot are that is just on time.

        :param period_ms: ``TE`` [ms]
        :param thinking_ms: for which its brain has it stand still, for each chunk [ms]
        Source: ``s' = max(s + TE, r)`` with answers that use up their budgets.
        """
        means = [
            sum(max(period_ms, budget_ms) for budget_ms in cycle_ms) / len(cycle_ms)
            for cycle_ms in self.cycles_ms
        ]
        per_ms = sum(1.0 / (mean + thinking_ms) for mean in means) / len(means)
        return 1.0 / per_ms


def mix_of(workload: Workload | RobotTimeWorkload) -> BudgetMix:
    """
    Return the response budgets of a workload.

    :raises ConfigError: if it is not made of budgets, or its fleet changes
    """
    if isinstance(workload, RobotTimeWorkload):
        raise ConfigError(
            f'workload {workload.name} is in robot time and has no deadlines to plan for; '
            'search with xinfer erc'
        )
    if workload.bursts:
        raise ConfigError(
            f'workload {workload.name} has bursts, so no one size of a fleet; search with xinfer '
            'erc, or plan for its budgets'
        )
    return BudgetMix(name=workload.name, cycles_ms=workload.cycles_ms)


class VlaTier:
    """
    Bounds the fleet of one device.

    A device that gives ``X`` responses per ms and robots that ask every ``I = max(TE, b)`` at
    least come to ``N = X · I``: with more, answers take longer than ``b``, since no robot has
    more than one request under way. ``X`` is what the operating points come to for a latency of
    ``l = b − f − δ``, with part of the time at one and part at the next.

    But requests do not come evenly. One that comes at any moment finds those of the ``N − 1``
    others under way, each for a share ``l / I`` of the time; with its own they may be as many as
    the device holds at that latency: ``1 + (N − 1) · l / I ≤ X · l``. Requests of wider budgets
    give way, and do not count here.

    Source: asymptotic bounds of closed queueing systems (Denning and Buzen 1978), the law of
    Little, and what an arrival finds (Lavenberg and Reiser 1980); latencies and rates are those
    of the calibration, as admission reckons with them.

    :raises ConfigError: if the criterion is not one of deadlines
    """

    def __init__(
        self, settings: PolicySettings, calibration: Calibration, criterion: Criterion
    ) -> None:
        if criterion.attainment is None:
            raise ConfigError(
                f'criterion {criterion.name} asks for no deadlines; paper, strict or '
                'attainment:SHARE is needed here; xinfer erc searches with any'
            )
        self._outside_ms = calibration.front_end_ms + calibration.reserved_ms
        self._points = _best(operating_points(settings, calibration))
        self._criterion = criterion

    def per_ms(self, mix: BudgetMix, period_ms: float, thinking_ms: float = 0.0) -> float:
        """
        Return the responses per ms that are on time, 0 if not even one robot is [1/ms].

        :param period_ms: ``TE`` [ms]
        :param thinking_ms: see ``BudgetMix.interval_ms``
        """
        tightest_ms = self._tightest_ms(mix)
        room_ms = tightest_ms - self._outside_ms
        latencies_ms = [point.latency_ms for point in self._points]
        if room_ms < latencies_ms[0] - ROUNDING:
            return 0.0
        most = float(np.interp(room_ms, latencies_ms, [p.per_ms for p in self._points]))
        own = 1.0 / mix.interval_ms(period_ms, thinking_ms)
        return min(most, own + max(most - 1.0 / room_ms, 0.0) / mix.shares[tightest_ms])

    def robots(self, mix: BudgetMix, period_ms: float, thinking_ms: float = 0.0) -> int:
        """
        Return the largest fleet.

        :param period_ms: ``TE`` [ms]
        :param thinking_ms: see ``BudgetMix.interval_ms``
        """
        per_ms = self.per_ms(mix, period_ms, thinking_ms)
        return int(per_ms * mix.interval_ms(period_ms, thinking_ms) + ROUNDING)

    def _tightest_ms(self, mix: BudgetMix) -> float:
        """Return the tightest budget that must be kept; few enough responses may be late."""
        assert self._criterion.attainment is not None
        spare = 1.0 - self._criterion.attainment if self._criterion.class_attainment is None else 0
        for budget_ms, share in mix.shares.items():
            spare -= share
            if spare < -ROUNDING:
                return budget_ms
        return max(mix.shares)
