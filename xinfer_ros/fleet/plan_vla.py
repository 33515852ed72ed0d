# SPDX-License-Identifier: Apache-2.0
"""How many robots a device keeps on time, by bounds that need no simulation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

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
    """Return those points of which no quicker one gives as much."""
    best: list[OperatingPoint] = []
    for point in sorted(points, key=lambda p: (p.latency_ms, -p.per_ms)):
        if not best or point.per_ms > best[-1].per_ms:
            best.append(point)
    return best


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

    A device that gives ``X`` responses per ms and robots that ask every ``max(TE, b)`` at least
    come to ``N = X · max(TE, b)``: with more, answers take longer than ``b``, since no robot has
    more than one request under way. ``X`` is the largest of the operating points that a deadline
    leaves: ``latency + f + δ ≤ b``.

    Source: asymptotic bounds of closed queueing systems (Denning and Buzen 1978); latencies and
    rates are those of the calibration, as admission reckons with them.

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

    def per_ms(self, mix: BudgetMix) -> float:
        """Return the responses per ms that are on time, 0 if not even one robot is [1/ms]."""
        room_ms = self._tightest_ms(mix) - self._outside_ms + ROUNDING
        return max((p.per_ms for p in self._points if p.latency_ms <= room_ms), default=0.0)

    def robots(self, mix: BudgetMix, period_ms: float, thinking_ms: float = 0.0) -> int:
        """
        Return the largest fleet.

        :param period_ms: ``TE`` [ms]
        :param thinking_ms: see ``BudgetMix.interval_ms``
        """
        return int(self.per_ms(mix) * mix.interval_ms(period_ms, thinking_ms) + ROUNDING)

    def _tightest_ms(self, mix: BudgetMix) -> float:
        """Return the tightest budget that must be kept; few enough responses may be late."""
        assert self._criterion.attainment is not None
        spare = 1.0 - self._criterion.attainment if self._criterion.class_attainment is None else 0
        for budget_ms, share in mix.shares.items():
            spare -= share
            if spare < -ROUNDING:
                return budget_ms
        return max(mix.shares)
