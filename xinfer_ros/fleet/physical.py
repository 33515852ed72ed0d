# SPDX-License-Identifier: Apache-2.0
"""What response delay costs a simulated robot, over tasks, commitments and delays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.fleet.physical_intervals import Estimate, bootstrapped, share
from xinfer_ros.fleet.task_pool import TaskPool
from xinfer_ros.physics.transfer_episode import TransferResult, TransferTask, run_transfer
from xinfer_ros.robot.execution_mode import ExecutionMode

STATIC, MOVING = 'static', 'moving'
TASKS = (STATIC, MOVING)
MEASURED = 'measured'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """
    Under what a number of episodes is run.

    :param task: one of ``TASKS``
    :param commitment: ``d`` [steps], None: measured
    """

    task: str
    mode: ExecutionMode
    commitment: int | None
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalPlan:
    """
    What is run.

    :param conditions: each with every seed
    :param seeds: of the episodes
    :param speed: of the cube in the moving task [m/s]
    :param spread: largest deviation of a delay as a share of its mean
    :param period_ms: ``TE`` [ms]
    :param horizon: rows of a chunk, ``H``
    :param limit_s: after which an episode has failed [s]
    """

    conditions: tuple[Condition, ...]
    seeds: tuple[int, ...]
    speed: float
    spread: float
    period_ms: int
    horizon: int
    limit_s: float

    def tasks(self) -> list[TransferTask]:
        """Return every episode, condition by condition."""
        return [
            TransferTask(
                seed=seed,
                speed=self.speed if condition.task == MOVING else 0.0,
                mode=condition.mode,
                delay_ms=condition.delay_ms,
                spread=self.spread,
                commitment=condition.commitment,
                period_ms=self.period_ms,
                horizon=self.horizon,
                limit_s=self.limit_s,
            )
            for condition in self.conditions
            for seed in self.seeds
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalRecord:
    """
    What has come of one condition; intervals are those of 95 %.

    :param commitment: ``d`` [steps] or ``measured``
    :param success: share of episodes in which the cube has changed hands in time
    :param seconds: mean time of those [s]
    :param per_hour: transfers in an hour of trying, failed episodes included
    :param change: that rate over the one at the least delay, less 1; with the same seeds
    :param grips: times that the right gripper closed, per episode
    :param starved: share of ticks without a row
    :param overfrozen: rows promised in vain, per chunk
    :param violated: share of chunks that came after their promised rows had run out
    :param jump_max: largest joint step at a seam [rad]
    """

    task: str
    mode: str
    commitment: str
    delay_ms: int
    episodes: int
    success: float
    success_low: float
    success_high: float
    seconds: float
    seconds_low: float
    seconds_high: float
    per_hour: float
    per_hour_low: float
    per_hour_high: float
    change: float
    change_low: float
    change_high: float
    grips: float
    starved: float
    overfrozen: float
    violated: float
    jump_max: float

    def estimate(self, figure: str) -> Estimate:
        """Return a figure with its interval: success, seconds, per_hour or change."""
        value, low, high = (getattr(self, figure + end) for end in ('', '_low', '_high'))
        return Estimate(value=value, low=low, high=high)


def run_physical(
    plan: PhysicalPlan, jobs: int | None, done: Callable[[object], None]
) -> list[PhysicalRecord]:
    """
    Return a record for each condition.

    :param jobs: number of processes, None: one a core
    :param done: called after each episode
    """
    with TaskPool(run_transfer, jobs) as pool:
        results = iter(pool.run(plan.tasks(), done))
    found = {condition: [next(results) for _ in plan.seeds] for condition in plan.conditions}
    return [_record(condition, found) for condition in plan.conditions]


Found = Mapping[Condition, Sequence[TransferResult]]


def _record(condition: Condition, found: Found) -> PhysicalRecord:
    results, count = found[condition], len(found[condition])
    times, base = _Times(results), _Times(found[_base(condition, found)])
    chunks, ticks = sum(each.chunks for each in results), sum(each.ticks for each in results)

    def change(drawn: npt.NDArray[np.intp]) -> float:
        before = base.per_hour(drawn)
        return times.per_hour(drawn) / before - 1.0 if before > 0.0 else float('nan')

    estimates = {
        'success': share(sum(each.done for each in results), count),
        'seconds': bootstrapped(count, times.seconds),
        'per_hour': bootstrapped(count, times.per_hour),
        'change': bootstrapped(count, change),
    }
    return PhysicalRecord(
        **{name: each.value for name, each in estimates.items()},
        **{f'{name}_low': each.low for name, each in estimates.items()},
        **{f'{name}_high': each.high for name, each in estimates.items()},
        task=condition.task,
        mode=condition.mode.value,
        commitment=MEASURED if condition.commitment is None else str(condition.commitment),
        delay_ms=condition.delay_ms,
        episodes=count,
        grips=sum(each.grips for each in results) / count,
        starved=sum(each.starved_ticks for each in results) / max(ticks, 1),
        overfrozen=sum(each.overfrozen_steps for each in results) / max(chunks, 1),
        violated=sum(each.handoff_violations for each in results) / max(chunks, 1),
        jump_max=max(each.jump_max for each in results),
    )


def _base(condition: Condition, found: Found) -> Condition:
    """Return the condition with the least delay that is otherwise the same."""
    same = [
        each
        for each in found
        if (each.task, each.mode, each.commitment)
        == (condition.task, condition.mode, condition.commitment)
    ]
    return min(same, key=lambda each: each.delay_ms)


class _Times:
    """When episodes have ended, and whether with success, to be drawn from."""

    def __init__(self, results: Sequence[TransferResult]) -> None:
        self._seconds = np.array([each.seconds for each in results])
        self._done = np.array([each.done for each in results])

    def per_hour(self, drawn: npt.NDArray[np.intp]) -> float:
        """Return the successes in an hour of such episodes."""
        return 3600.0 * float(self._done[drawn].sum() / self._seconds[drawn].sum())

    def seconds(self, drawn: npt.NDArray[np.intp]) -> float:
        """Return the mean time of those that succeed [s], NaN without any."""
        times = self._seconds[drawn][self._done[drawn]]
        return float(times.mean()) if len(times) else float('nan')
