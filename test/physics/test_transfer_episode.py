# SPDX-License-Identifier: Apache-2.0
"""Whole episodes of the cube transfer in closed loop."""

from dataclasses import replace

import numpy as np

from xinfer_ros.physics.scene_view import GRIPPERS, JOINT_NAMES
from xinfer_ros.physics.transfer_episode import TransferTask, run_transfer
from xinfer_ros.physics.transfer_expert import TransferExpert
from xinfer_ros.physics.transfer_loop import ExpertSource
from xinfer_ros.physics.transfer_scene import CONTROL_NS, Drift, TransferScene, load_model
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.sim.closed_loop import Tie

TASK = TransferTask(
    seed=4,
    speed=0.0,
    mode=ExecutionMode.RTC,
    delay_ms=0,
    spread=0.0,
    commitment=None,
    period_ms=180,
    horizon=50,
    limit_s=8.0,
)


def test_expert_passes_the_cube_with_one_grip() -> None:
    result = run_transfer(TASK)
    assert result.done
    assert 2.0 < result.seconds < 6.0
    assert (result.grips, result.starved_ticks, result.handoff_violations) == (1, 0, 0)


def test_expert_passes_a_cube_that_drifts() -> None:
    assert run_transfer(replace(TASK, speed=0.04)).done


def test_episode_that_is_not_over_in_time_has_failed_in_the_same_way_each_time() -> None:
    task = replace(TASK, limit_s=0.8, speed=0.04)
    result = run_transfer(task)
    assert (result.done, result.seconds) == (False, 0.8)
    assert run_transfer(task) == result


def test_chunk_repeats_what_was_promised_and_leaves_grippers_alone() -> None:
    view = TransferScene(load_model(), 4, Drift()).view()
    source = ExpertSource(TransferExpert(load_model(), CONTROL_NS), 30)
    leftover = np.tile(view.joints.astype(np.float32), (20, 1))
    rows = source.chunk(view, Tie(leftover=leftover, frozen_steps=8, executed_steps=0))
    assert rows.shape == (30, len(JOINT_NAMES))
    assert (rows[:8] == leftover[:8]).all()
    grippers = [JOINT_NAMES.index(name) for name in GRIPPERS]
    assert (rows[8:, grippers] == 1.0).all()  # opened at once, not drawn to the leftover
