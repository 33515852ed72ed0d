# SPDX-License-Identifier: Apache-2.0
"""How chunks follow each other in each mode, and what a new task does."""

import numpy as np
import pytest

from xinfer_ros.errors import Reason
from xinfer_ros.robot.execution_mode import ExecutionMode

from .driven_robot import MS, TICK_NS, DrivenRobot, moving_robot, numbered_rows


def _chunk(first_step: int, value: float) -> np.ndarray:
    rows = numbered_rows(first_step, 50)
    rows[:, 1] = value
    return rows


@pytest.mark.parametrize('mode', list(ExecutionMode))
def test_only_real_time_chunking_tells_the_leftover(mode: ExecutionMode) -> None:
    robot = moving_robot(queued=10, mode=mode)
    robot.tick(10)
    robot.clock.advance(500 * MS)
    draft = robot.ask_when_due()
    assert draft.executed_steps == 10
    robot.answer(draft)
    robot.tick(10)
    if mode is not ExecutionMode.SYNC:
        draft = robot.ask_when_due()
        told = mode is ExecutionMode.RTC
        assert (len(draft.leftover), draft.commitment_steps) == ((40, 6) if told else (0, 0))


def test_a_synchronous_robot_asks_when_its_queue_is_empty() -> None:
    robot = moving_robot(queued=30, mode=ExecutionMode.SYNC)
    robot.tick(29)
    assert robot.ask() is None
    robot.tick(1)
    draft = robot.ask()
    assert draft is not None
    assert draft.executed_steps == 30
    robot.tick(4)
    robot.answer(draft, numbered_rows(30, 30))
    assert robot.steps(30) == list(range(30, 60))
    assert robot.executor.report().starved_ticks == 4


def test_an_asynchronous_robot_replaces_its_rows_at_the_handoff() -> None:
    robot = moving_robot(mode=ExecutionMode.ASYNC)
    robot.tick(10)
    draft = robot.ask_when_due()
    robot.tick(5)
    robot.answer(draft, _chunk(10, 7.0))
    row = robot.tick(1)[0]
    assert row is not None
    assert row.values.tolist() == [15.0, 7.0]
    assert row.is_seam


def test_an_ensemble_blends_arms_and_never_grippers() -> None:
    """CQ-12 through the executor."""
    robot = DrivenRobot(
        ('arm', 'gripper'), mode=ExecutionMode.ENSEMBLE, discrete_joints=('gripper',)
    )
    zeros, ones = np.zeros((50, 2), np.float32), np.ones((50, 2), np.float32)
    robot.answer(robot.ask_when_due(), zeros)
    robot.tick(10)
    robot.answer(robot.ask_when_due(), ones)
    rows = [row.values for row in robot.tick(40) if row is not None]
    assert all(0.4 < arm < 0.6 for arm, _ in rows)
    assert {float(gripper) for _, gripper in rows} == {1.0}


def test_the_seam_is_measured_without_the_joints_that_switch() -> None:
    robot = DrivenRobot(('arm', 'gripper'), discrete_joints=('gripper',))
    robot.answer(robot.ask_when_due(), np.zeros((50, 2), np.float32))
    robot.tick(10)
    assert robot.executor.report().handoff_jump_max == 0.0
    robot.answer(robot.ask_when_due(), np.full((50, 2), [0.25, 1.0], np.float32))
    robot.tick(1)
    assert robot.executor.report().handoff_jump == 0.25
    robot.tick(5)
    robot.answer(robot.ask_when_due(), np.full((50, 2), [0.125, 1.0], np.float32))
    robot.tick(5)
    report = robot.executor.report()
    assert (report.handoff_jump, report.handoff_jump_max) == (0.125, 0.25)


def test_the_first_row_of_an_episode_is_no_seam() -> None:
    robot = moving_robot()
    robot.tick(10)
    robot.executor.start_episode()
    robot.answer(robot.ask_when_due(), _chunk(500, 9.0))
    robot.tick(1)
    assert robot.executor.report().handoff_jump_max == 0.0


def test_violations_are_counted_where_something_was_promised_only() -> None:
    for mode, violations in ((ExecutionMode.RTC, 1), (ExecutionMode.ASYNC, 0)):
        robot = moving_robot(mode=mode, commitment_steps=4)
        robot.tick(10)
        draft = robot.ask_when_due()
        robot.tick(5)
        robot.answer(draft, frozen_steps=draft.commitment_steps)
        assert robot.executor.report().handoff_violations == violations


def test_a_new_task_supersedes_the_request_in_flight() -> None:
    """The next leaves at once, and the answer to the old task is never executed."""
    robot = moving_robot()
    robot.tick(8)
    old = robot.ask_when_due()
    robot.clock.advance(10 * MS)
    robot.executor.supersede()
    new = robot.ask()
    assert new is not None
    assert robot.answer(old, _chunk(8, 9.0)) is Reason.SUPERSEDED
    assert robot.answer(new, _chunk(8, 3.0)) is Reason.OK
    row = robot.tick(1)[0]
    assert row is not None
    assert row.values.tolist() == [8.0, 3.0]
    report = robot.executor.report()
    assert (report.superseded, report.unanswered) == (1, 0)


def test_an_ensemble_blends_no_chunk_of_an_old_task_into_a_new_one() -> None:
    """The way to the middle of two goals leads to neither; old rows are played until then."""
    robot = DrivenRobot(mode=ExecutionMode.ENSEMBLE)
    for _ in range(3):
        robot.answer(robot.ask_when_due(), _chunk(0, -5.0))
    robot.executor.supersede()
    new = robot.ask()
    assert new is not None
    assert [row.values[1] for row in robot.tick(3) if row is not None] == [-5.0] * 3
    robot.answer(new, _chunk(0, 5.0))
    assert [row.values[1] for row in robot.tick(3) if row is not None] == [5.0] * 3


def test_a_new_task_without_a_request_in_flight_asks_at_once() -> None:
    robot = moving_robot()
    robot.clock.advance(1 * MS)
    assert robot.ask() is None
    robot.executor.supersede()
    assert robot.ask() is not None
    assert robot.executor.report().superseded == 0


def test_a_request_that_leaves_late_is_a_trigger_miss() -> None:
    robot = moving_robot()
    robot.clock.advance(180 * MS)
    assert robot.executor.request_is_due(robot.clock.now_ns())
    robot.clock.advance(TICK_NS)  # a camera was silent at the tick before
    assert robot.ask() is not None
    assert robot.executor.report().trigger_misses == 1


def test_requests_that_leave_in_time_are_no_misses() -> None:
    robot = moving_robot(queued=500)
    for _ in range(20):
        robot.answer(robot.ask_when_due())
        robot.tick(3)
    assert robot.executor.report().trigger_misses == 0


def test_rows_left_out_after_a_late_tick_are_counted_and_consumed() -> None:
    """Case lerobot 2531: time is not stretched; the leftover of the next request knows."""
    robot = moving_robot()
    robot.tick(3)
    row = robot.executor.tick(skip_steps=2)
    assert row is not None
    assert (row.step, row.values[0]) == (5, 5.0)
    assert robot.ask_when_due().executed_steps == 6
    assert robot.executor.report().skipped_steps == 2


def test_motion_tells_a_still_chunk_from_a_moving_one() -> None:
    """Case dot_policy 4: rows come, and nothing moves."""
    robot = DrivenRobot(minimum_period_ns=10_000 * MS)
    robot.answer(robot.ask_when_due(), np.ones((100, 2), np.float32))
    robot.tick(40)
    assert robot.executor.report().motion == 0.0
    moving = moving_robot(queued=60)
    moving.tick(40)
    assert moving.executor.report().motion == pytest.approx(1.0e9 // TICK_NS)


def test_a_starved_robot_does_not_move() -> None:
    robot = moving_robot(queued=20)
    robot.tick(30)
    assert robot.executor.report().motion == 19.0
    robot.tick(15)
    assert robot.executor.report().motion == pytest.approx(5.0, abs=1.0)
    robot.tick(10)
    assert robot.executor.report().motion == 0.0


def test_even_speed_is_motion_and_no_speed_is_none() -> None:
    """Rows of 0.5/s for a second are a way of 0.5; what holds is zero, the seam starts there."""
    robot = DrivenRobot(rows_are_velocities=True, minimum_period_ns=10_000 * MS)
    robot.answer(robot.ask_when_due(), np.full((40, 2), -0.5, np.float32))
    robot.tick(40)
    assert robot.executor.report().motion == pytest.approx(0.5, abs=0.01)
    robot.tick(31)
    assert robot.executor.report().motion == 0.0
    robot.executor.supersede()
    robot.answer(robot.ask_when_due(), np.full((40, 2), 0.25, np.float32))
    robot.tick(1)
    assert robot.executor.report().handoff_jump == 0.25
