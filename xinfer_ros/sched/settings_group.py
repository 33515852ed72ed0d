# SPDX-License-Identifier: Apache-2.0
"""The settings of the policies that serve groups of requests, stage after stage together."""

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Rates
from xinfer_ros.sched.partition import best_share, divided, group_ms, round_time
from xinfer_ros.sched.settings_base import PolicySettings

DEFAULT_BATCH = 5  # of the workloads of Armory
MAX_GROUP = 16


def pipeline_ms(calibration: Calibration) -> list[float]:
    """
    Return ``d_infer`` of groups of 1 to ``MAX_GROUP`` requests [ms].

    As measured; a size that was not follows from the stages, units beside each other as far as
    lanes go. It never falls.
    """
    measured = calibration.infer_ms[:MAX_GROUP]
    sizes = range(len(measured) + 1, MAX_GROUP + 1)
    by_stages = (sum(group_ms(calibration, stage, size) for stage in Stage) for size in sizes)
    return list(accumulate((*measured, *by_stages), max))


def _batched_per_ms(calibration: Calibration, max_batch: int) -> float:
    """Return the responses per ms of the most efficient batches, one after the other."""
    times = pipeline_ms(calibration)[:max_batch]
    return max(size / ms for size, ms in enumerate(times, start=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBatchSettings(PolicySettings):
    """
    Batches through the whole pipeline that fill up for a while, as Triton and vLLM-Omni do it.

    :param max_batch: requests of a batch, ``b``
    :param wait_ms: time for which the first of a batch waits for others, ``w``
    """

    name: ClassVar[str] = 'dynamic_batch'
    algorithm: ClassVar[str] = 'dynamic_batch'
    batches: ClassVar[bool] = True
    max_batch: int = DEFAULT_BATCH
    wait_ms: float

    @classmethod
    def of(cls, calibration: Calibration) -> 'DynamicBatchSettings':
        """Return the defaults for a device: wait for half of what one request takes."""
        return cls(wait_ms=0.5 * calibration.alone_ms)

    def capacity_per_ms(self, calibration: Calibration) -> float:
        """Return the responses per ms that this policy gives at most."""
        return _batched_per_ms(calibration, self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialSettings(DynamicBatchSettings):
    """One request after the other through the whole pipeline, as openpi and FlashRT do it."""

    name: ClassVar[str] = 'serial'
    batches: ClassVar[bool] = False
    max_batch: int = 1
    wait_ms: float = 0.0

    @classmethod
    def of(cls, calibration: Calibration) -> 'SerialSettings':
        """Return the defaults for a device."""
        return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class RobionSettings(PolicySettings):
    """
    Lockstep rounds: Context of one group beside Action of the group before it; Robion.

    :param group: requests of a group; by default what the lanes of every stage take at once
    :param publish_at_barrier: whether answers leave at the end of the round, not of their unit
    :param context_share: share of the device that Context has for itself, Action has the rest; by
        default that of the shortest round; 0: undivided
    """

    name: ClassVar[str] = 'robion'
    algorithm: ClassVar[str] = 'robion'
    batches: ClassVar[bool] = True
    group: int
    publish_at_barrier: bool = True
    context_share: float

    @classmethod
    def of(cls, calibration: Calibration) -> 'RobionSettings':
        """Return the defaults for a device."""
        at_once = (calibration.bound[s] * len(calibration.batch_work[s]) for s in Stage)
        group = min(*at_once, MAX_GROUP)
        return cls(group=group, context_share=best_share(calibration, group))

    def capacity_per_ms(self, calibration: Calibration) -> float:
        """Return the responses per ms that this policy gives at most."""
        return self.group / round_time(calibration, self.group, self.context_share).round_ms

    def device_rates(self, rates: Rates) -> Rates:
        """Return the rates at which units progress on their part of the device."""
        return divided(rates, self.context_share) if self.context_share else rates


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinSettings(PolicySettings):
    """
    Batches through the whole pipeline, robots in turn; a baseline of Armory.

    :param max_batch: requests of a batch
    """

    name: ClassVar[str] = 'round_robin'
    algorithm: ClassVar[str] = 'round_robin'
    batches: ClassVar[bool] = True
    max_batch: int = DEFAULT_BATCH

    def capacity_per_ms(self, calibration: Calibration) -> float:
        """Return the responses per ms that this policy gives at most."""
        return _batched_per_ms(calibration, self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmoryEdfSettings(RoundRobinSettings):
    """Batches through the whole pipeline of the robots that run dry soonest; Armory."""

    name: ClassVar[str] = 'armory_edf'
    algorithm: ClassVar[str] = 'armory_edf'


@dataclass(frozen=True, slots=True, kw_only=True)
class LookaheadSettings(RoundRobinSettings):
    """
    Batches through the whole pipeline that do most for the action queues; Armory, and beyond it.

    :param objective: steps: executed steps gained per time of the device, up to a fixed time, so
        that a batch sees its own effect; page: up to the end of the plan, as published;
        starvation: the least time without rows, all of what follows played ahead
    :param fast_weight: weight ``w`` of robots whose chunks last up to ``tier_horizon_ms``
    :param slow_weight: weight of the others
    :param tier_horizon_ms: execution horizon that parts the two tiers
    :param protection: whether a robot counts more the less it has moved lately, so that nobody is
        starved for others
    :param depth: steps, page: batches that are planned ahead, ``L``
    :param window: steps: the fixed time, in lives of the shortest chunk of the fleet; at least the
        longest plan
    :param fairness: steps, page, with protection: the square root of a weight is divided by the
        share of time in which the robot moved, to this power
    :param least_share: below this share it weighs no more
    :param flat: starvation: time in which it counts in full, in lives of the shortest chunk
    :param fade: time after that over which it counts less and less, in the same lives
    :param bonus: lives by which plans take a robot for drier, for each weight above 1
    :param memory: with protection: weight of the share of time in which a robot starved of late
    :param floor: that share from which on it costs in addition
    :param floor_price: how much more
    """

    name: ClassVar[str] = 'lookahead'
    algorithm: ClassVar[str] = 'lookahead'
    objective: str = 'starvation'
    fast_weight: float = 1.0
    slow_weight: float = 1.0
    tier_horizon_ms: float = 500.0
    protection: bool = True
    depth: int = 1
    window: float = 1.1
    fairness: float = 2.5
    least_share: float = 0.05
    flat: float = 1.5
    fade: float = 3.0
    bonus: float = 0.06
    memory: float = 2.5
    floor: float = 0.1
    floor_price: float = 12.0

    def weight(self, life_ms: float) -> float:
        """Return the weight of a robot whose chunks last so long."""
        return self.fast_weight if life_ms <= self.tier_horizon_ms else self.slow_weight
