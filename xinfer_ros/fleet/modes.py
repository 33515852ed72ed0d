# SPDX-License-Identifier: Apache-2.0
"""The execution modes compared on the same recorded motions, delays and seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.sim.closed_loop import ClosedLoop, ClosedLoopRun, ResponseDelay
from xinfer_ros.sim.closed_loop_recording import FollowingPlant, RecordingSource

#: A run may take so much longer than its recording before it counts as stuck [1].
MOST_TIMES_LONGER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """
    What is played of a recording.

    :param joints: names of the joints
    :param switching: ``(num_joints,)`` bool, joints that are open or closed
    :param start: measured joints at its beginning ``(num_joints,)``
    :param rows: commands, one a keyframe ``(T, num_joints)``
    :param spacing_ns: between them [ns]
    """

    joints: tuple[str, ...]
    switching: npt.NDArray[np.bool_]
    start: Rows
    rows: Rows
    spacing_ns: int

    @classmethod
    def of(cls, episode: Episode) -> 'Motion':
        """
        Return the commands of an episode at their own rate.

        :raises ConfigError: if it has none
        """
        told = episode.commands
        if told is None or len(told.times_ns) < 2:
            raise ConfigError(
                f'episode {episode.name} has no joint commands; the modes are compared on '
                'recordings that have them'
            )
        spacing_ns = int(np.median(np.diff(told.times_ns)))
        times_ns = np.arange(told.times_ns[0], told.times_ns[-1] + 1, spacing_ns)
        rows = told.at(times_ns).astype(np.float32)
        measured = rows[0] if episode.states is None else episode.states.values[0]
        if not np.isfinite(rows).all() or not np.isfinite(measured).all():
            raise ConfigError(
                f'episode {episode.name}: not every joint is told and measured from the start on'
            )
        return cls(
            joints=episode.joints,
            switching=np.array([name in episode.gripper_joints for name in episode.joints]),
            start=measured.astype(np.float32),
            rows=rows,
            spacing_ns=spacing_ns,
        )

    @property
    def discrete_joints(self) -> tuple[str, ...]:
        """Return the joints that switch."""
        return tuple(np.array(self.joints)[self.switching].tolist())

    @property
    def largest_step(self) -> float:
        """Return the largest step of a joint that does not switch, from row to row [rad]."""
        return _largest_step(self.rows, self.switching)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModesPlan:
    """
    What is compared.

    :param motions: recordings that are played
    :param modes: that are compared
    :param delays_ms: mean response delays [ms]
    :param seeds: of delays and deviations, one run each
    :param spread: largest deviation of a delay as a share of its mean
    :param deviation: standard deviation of an inference from the recording [rad]
    :param horizon: rows of a chunk, ``H``
    :param config: of the executor: ``TE``, ``d`` and its margin
    """

    motions: tuple[Motion, ...]
    modes: tuple[ExecutionMode, ...]
    delays_ms: tuple[int, ...]
    seeds: tuple[int, ...]
    spread: float
    deviation: float
    horizon: int
    config: ExecutorConfig

    @property
    def num_runs(self) -> int:
        """Return how many runs it takes."""
        points = len(self.modes) * len(self.delays_ms)
        return points * len(self.motions) * len(self.seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeRecord:
    """
    What has come of one mode at one delay, over all motions and seeds.

    :param jump_p95: 95th percentile of the largest joint step at a seam [rad]
    :param jump_max: the largest of all [rad]
    :param step_max: largest joint step between any two commands [rad]
    :param starved: share of ticks without a row
    :param overfrozen: rows promised in vain, per chunk
    :param violated: share of chunks that came after their promised rows had run out
    :param tracking_rms: root mean square of command less recording [rad]
    :param completion_s: mean time to the last row [s]
    :param slower: that time over the one of the recordings
    :param period_ms: mean time between two chunks [ms]
    """

    mode: str
    delay_ms: int
    runs: int
    jump_p95: float
    jump_max: float
    step_max: float
    starved: float
    overfrozen: float
    violated: float
    tracking_rms: float
    completion_s: float
    slower: float
    period_ms: float


def compare_modes(plan: ModesPlan, done: Callable[[], None]) -> list[ModeRecord]:
    """
    Return a record for each mode and delay.

    :param done: called after each run
    """
    return [
        _record(plan, mode, delay_ms, list(_runs(plan, mode, delay_ms, done)))
        for mode in plan.modes
        for delay_ms in plan.delays_ms
    ]


_Played = tuple[Motion, ClosedLoopRun]


def _runs(
    plan: ModesPlan, mode: ExecutionMode, delay_ms: int, done: Callable[[], None]
) -> Iterator[_Played]:
    for motion in plan.motions:
        for seed in plan.seeds:
            yield motion, _run(plan, motion, mode, delay_ms, seed)
            done()


def _run(
    plan: ModesPlan, motion: Motion, mode: ExecutionMode, delay_ms: int, seed: int
) -> ClosedLoopRun:
    settings = replace(
        ExecutorSettings.from_config(plan.config, 'robot', motion.joints),
        keyframe_spacing_ns=motion.spacing_ns,
        discrete_joints=motion.discrete_joints,
        mode=mode,
    )
    source = RecordingSource(
        motion.rows,
        motion.start,
        spacing_ns=motion.spacing_ns,
        horizon=plan.horizon,
        deviation=plan.deviation,
        switching=motion.switching,
        seed=seed,
    )
    loop = ClosedLoop(
        settings,
        FollowingPlant(motion.start, motion.spacing_ns),
        source,
        ResponseDelay(delay_ms * 1_000_000, plan.spread, seed),
    )
    run = loop.run(MOST_TIMES_LONGER * len(motion.rows), len(motion.rows))
    if not run.done:
        raise ConfigError(
            f'{mode.value} at {delay_ms} ms has not ended within {MOST_TIMES_LONGER} times the '
            'length of the recording: take a shorter delay or a larger --horizon'
        )
    return run


def _record(
    plan: ModesPlan, mode: ExecutionMode, delay_ms: int, played: Sequence[_Played]
) -> ModeRecord:
    reports = [run.report for _, run in played]
    ticks, chunks = sum(each.ticks for each in reports), sum(each.chunks for each in reports)
    jumps = np.concatenate([run.jumps for _, run in played])
    seconds = [run.ticks * motion.spacing_ns / 1e9 for motion, run in played]
    recorded = [len(motion.rows) * motion.spacing_ns / 1e9 for motion, _ in played]
    squares = np.concatenate([_errors(motion, run) ** 2 for motion, run in played])
    return ModeRecord(
        mode=mode.value,
        delay_ms=delay_ms,
        runs=len(played),
        jump_p95=float(np.percentile(jumps, 95)) if len(jumps) else 0.0,
        jump_max=float(jumps.max(initial=0.0)),
        step_max=max(_largest_step(run.commands, motion.switching) for motion, run in played),
        starved=sum(each.starved_ticks for each in reports) / ticks,
        overfrozen=sum(each.overfrozen_steps for each in reports) / chunks,
        violated=sum(each.handoff_violations for each in reports) / chunks,
        tracking_rms=float(np.sqrt(squares.mean())),
        completion_s=float(np.mean(seconds)),
        slower=sum(seconds) / sum(recorded),
        period_ms=sum(seconds) * 1e3 / chunks,
    )


def _errors(motion: Motion, run: ClosedLoopRun) -> npt.NDArray[np.float64]:
    """Return command less recording of the joints that do not switch, while rows are played."""
    moving = run.steps > 0
    rows = np.minimum(run.steps[moving] - 1, len(motion.rows) - 1)
    errors = (run.commands[moving] - motion.rows[rows])[:, ~motion.switching]
    return errors.astype(np.float64).ravel()


def _largest_step(commands: Rows, switching: npt.NDArray[np.bool_]) -> float:
    return float(np.abs(np.diff(commands, axis=0))[:, ~switching].max(initial=0.0))
