# SPDX-License-Identifier: Apache-2.0
"""One episode of the cube transfer in closed loop, from the seed to what has come of it."""

from dataclasses import dataclass, replace

import numpy as np

from xinfer_ros.config import MAX_BUDGET_S, ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.physics.scene_view import CLOSED, JOINT_NAMES, OPEN
from xinfer_ros.physics.transfer_expert import TransferExpert
from xinfer_ros.physics.transfer_loop import ExpertSource, TransferPlant
from xinfer_ros.physics.transfer_scene import CONTROL_NS, Drift, TransferScene, load_model
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.sim.closed_loop import ClosedLoop, ResponseDelay


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTask:
    """
    One episode that is to be run.

    :param seed: of the cube's place, of the first direction of its drift and of delays
    :param speed: at which the cube drifts to and fro [m/s], 0: it rests
    :param mode: how chunks follow each other
    :param delay_ms: mean response delay [ms]
    :param spread: largest deviation of a delay as a share of its mean
    :param commitment: ``d`` [steps], None: measured, as the executor does by itself
    :param period_ms: ``TE`` [ms]
    :param horizon: rows of a chunk, ``H``
    :param limit_s: after which the episode has failed [s]
    """

    seed: int
    speed: float
    mode: ExecutionMode
    delay_ms: int
    spread: float
    commitment: int | None
    period_ms: int
    horizon: int
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """
    What has come of an episode.

    :param done: whether the cube has changed hands in time
    :param seconds: until then, the limit if it has not [s]
    :param grips: how often the right gripper was told to close; 1 if nothing goes wrong
    :param jump_max: largest joint step at a seam [rad]
    :param starved_ticks: control ticks without a row
    """

    done: bool
    seconds: float
    ticks: int
    starved_ticks: int
    chunks: int
    overfrozen_steps: int
    handoff_violations: int
    grips: int
    jump_max: float


def run_transfer(task: TransferTask) -> TransferResult:
    """Run an episode in virtual time."""
    scene = TransferScene(load_model(sliding=task.speed > 0.0), task.seed, Drift(speed=task.speed))
    expert = TransferExpert(load_model(), CONTROL_NS)
    loop = ClosedLoop(
        _settings(task),
        TransferPlant(scene),
        ExpertSource(expert, task.horizon),
        ResponseDelay(task.delay_ms * 1_000_000, task.spread, task.seed),
    )
    run = loop.run(round(task.limit_s * 1e9 / CONTROL_NS))
    report = run.report
    return TransferResult(
        done=run.done,
        seconds=run.ticks * CONTROL_NS / 1e9,
        ticks=report.ticks,
        starved_ticks=report.starved_ticks,
        chunks=report.chunks,
        overfrozen_steps=report.overfrozen_steps,
        handoff_violations=report.handoff_violations,
        grips=_times_closed(run.commands[:, JOINT_NAMES.index('right_gripper')]),
        jump_max=report.handoff_jump_max,
    )


def _times_closed(told: Rows) -> int:
    """Return how often a gripper that was open was told to close, ``(ticks,)``."""
    is_open = told > (OPEN + CLOSED) / 2
    return int(np.count_nonzero(is_open[:-1] & ~is_open[1:]))


def _settings(task: TransferTask) -> ExecutorSettings:
    config = ExecutorConfig(
        keyframe_spacing_s=CONTROL_NS / 1e9,
        minimum_period_s=task.period_ms / 1e3,
        response_budget_s=MAX_BUDGET_S,  # nothing is late here, so that d follows the delay
        execution_mode=task.mode.value,
    )
    settings = ExecutorSettings.from_config(config, 'robot', JOINT_NAMES)
    if task.commitment is None:
        return settings
    return replace(settings, commitment_steps=task.commitment, commitment_margin_steps=None)
