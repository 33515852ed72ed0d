# SPDX-License-Identifier: Apache-2.0
"""Rows, hold, or nothing: what a robot is commanded at each tick."""

from typing import Any

import numpy as np
import pytest

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.command_source import CommandSource
from xinfer_ros.robot.hold import Hold, HoldMode
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.robot.watchdog import ChunkWatchdog

from .driven_robot import GRANT, MS, TICK_NS, DrivenRobot, numbered_rows

POSE = np.array([100.0, 0.0], np.float32)


class Commanded(DrivenRobot):
    """
    A robot with a command source.

    :param mode: what holds
    :param timeout_ms: of the chunk watchdog
    :param changes: settings of the executor
    """

    def __init__(
        self, mode: HoldMode = HoldMode.LAST_POSITION, timeout_ms: int = 0, **changes: Any
    ) -> None:
        super().__init__(**changes)
        pose = POSE if mode is HoldMode.SAFE_POSE else None
        hold = Hold(mode, TICK_NS, pose, speed=1.0)
        watchdog = ChunkWatchdog(timeout_ms * MS)
        self.source = CommandSource(self.executor, hold, watchdog, overrun_skip_steps=2)
        self.source.begin_episode()

    def get_chunk(self, num_rows: int = 50) -> None:
        """Ask and be answered at once."""
        draft = self.ask_when_due()
        self.answer(draft, numbered_rows(draft.executed_steps, num_rows))
        self.source.chunk_accepted(self.clock.now_ns())

    def commanded(self, num_ticks: int, trouble: str = '') -> list[float | None]:
        """Tick; return column 0 of what was commanded."""
        values = []
        for _ in range(num_ticks):
            command = self.source.tick(self.clock.now_ns(), trouble=trouble)
            values.append(None if command is None else float(command[0]))
            self.clock.advance(TICK_NS)
        return values


def test_robot_at_rest_stays_at_rest_until_the_first_row() -> None:
    robot = Commanded()
    assert robot.commanded(5) == [None] * 5
    robot.get_chunk(3)
    assert robot.commanded(5) == [0, 1, 2, 2, 2]
    assert robot.source.report().hold == 'no chunk'
    assert robot.source.report().starved_ticks == 2


def test_silent_server_holds_the_robot_though_rows_remain() -> None:
    """CQ-09: at most three ticks after the timeout, and the rows are there afterwards."""
    robot = Commanded(timeout_ms=100)
    robot.get_chunk()
    assert robot.commanded(6) == [0, 1, 2, 3, 3, 3]  # 100 ms are over at the fourth interval
    report = robot.source.report()
    assert (report.phase, report.queued_steps) == (ExecutorPhase.HOLDING, 46)
    assert report.hold == 'chunk timeout: none came for 0.1 s'
    assert (report.ticks, report.starved_ticks) == (6, 2)
    robot.get_chunk()
    assert robot.commanded(2) == [4, 5]
    assert robot.source.report().hold == ''


def test_rows_from_before_a_way_to_the_safe_pose_are_never_played_after_it() -> None:
    robot = Commanded(HoldMode.SAFE_POSE)
    robot.get_chunk()
    assert robot.commanded(3) == [0, 1, 2]
    away = robot.commanded(3, trouble='joint states silent')
    assert np.allclose(np.diff([2, *away]), TICK_NS / 1e9, atol=1e-5)
    on = robot.commanded(2)  # the trouble is over, and the old rows are far away
    assert np.allclose(np.diff([away[-1], *on]), TICK_NS / 1e9, atol=1e-5)
    assert robot.source.report().queued_steps == 0


def test_held_robot_is_without_motion_though_rows_remain() -> None:
    """What is said of its motion, and what budgets are made from, is what it was commanded."""
    robot = Commanded(timeout_ms=100)
    robot.get_chunk()
    robot.commanded(4)
    assert robot.source.report().motion == 3.0
    robot.commanded(31)  # a second
    assert robot.source.report().motion == 0.0
    assert robot.source.report().starved_ticks == 31


def _ahead(distance: float) -> np.ndarray:
    return np.array([distance, 0.0], np.float32)


def test_step_to_the_first_row_counts_from_where_the_hold_has_led_the_robot() -> None:
    """It has left its last row behind, and what was measured when it asked."""
    limits = RowLimits.from_config(ExecutorConfig(step_limits=('a=1.0',)), ('a', 'b'), None)
    robot = Commanded(HoldMode.SAFE_POSE, limits=limits)
    robot.get_chunk(3)
    assert robot.commanded(3) == [0, 1, 2]
    robot.commanded(30)  # led on by a thirtieth a tick
    robot.clock.advance(1000 * MS)
    measured = Sensed(state=_ahead(2.9))
    assert robot.executor.request_is_due(robot.clock.now_ns())
    draft = robot.executor.begin_request(robot.clock.now_ns(), measured)
    reached = robot.commanded(30)[-1]
    assert reached == pytest.approx(2 + 60 * TICK_NS / 1e9, abs=1e-3)
    rows = numbered_rows(0, 5)
    assert robot.answer(draft, rows + _ahead(2.9)) is Reason.REJECTED_LIMITS
    robot.clock.advance(1000 * MS)
    draft = robot.executor.begin_request(robot.clock.now_ns(), measured)
    robot.commanded(1)
    assert robot.answer(draft, rows + _ahead(reached + 0.5)) is Reason.OK
    jump = robot.commanded(1)[0] - reached
    assert robot.source.report().handoff_jump == pytest.approx(jump - TICK_NS / 1e9, abs=1e-3)


def test_refusal_at_registration_is_why_a_robot_does_not_move() -> None:
    robot = Commanded()
    refusal = Rejected(Reason.REJECTED_JOINTS, 'no joint b')
    robot.executor.session.refused(refusal, robot.clock.now_ns())
    assert robot.source.report().hold == 'REJECTED_JOINTS: no joint b'
    robot.executor.granted(GRANT, robot.clock.now_ns())
    assert robot.source.report().hold == 'no chunk'


def test_late_tick_leaves_rows_out_and_a_stall_is_a_pause() -> None:
    """Also seen (lerobot 2531): time is not stretched after an overrun."""
    robot = Commanded()
    robot.get_chunk()
    taken = [
        float(robot.source.tick(robot.clock.now_ns(), missed=missed)[0])
        for missed in (0, 1, 0, 2, 0, 3, 0)
    ]
    assert taken == [0, 2, 3, 6, 7, 8, 9]
    report = robot.source.report()
    assert (report.overruns, report.skipped_steps) == (6, 3)


def test_stop_says_the_last_word_once_and_nothing_follows_until_an_episode() -> None:
    robot = Commanded()
    robot.get_chunk()
    robot.commanded(3)
    assert robot.source.stop().values[0] == 2
    assert robot.source.stop() is None
    assert robot.commanded(2) == [None, None]
    assert robot.source.report().phase is ExecutorPhase.STOPPED
    episode = robot.executor.report().episode
    robot.source.begin_episode()
    assert robot.commanded(2) == [None, None]  # old rows are gone
    assert robot.executor.report().episode == episode + 1
    robot.get_chunk()
    assert len(robot.commanded(1)) == 1


def test_stall_leads_only_a_robot_with_a_safe_pose_into_a_new_episode() -> None:
    robot = Commanded()
    robot.get_chunk()
    robot.commanded(3)
    assert robot.source.interrupt().values[0] == 2
    assert robot.commanded(1) == [3]  # a pause: it stands where it stood
    robot = Commanded(HoldMode.SAFE_POSE)
    robot.get_chunk()
    assert robot.source.interrupt() is None  # it has not moved yet
    assert robot.commanded(3) == [0, 1, 2]
    output = robot.source.interrupt()
    assert list(output.goal) == list(POSE)
    assert output.duration_ns == 98_000_000_000
    assert robot.commanded(2) == [None, None]  # its controller is on the way, and not at row 2
    assert robot.source.report().queued_steps == 0
    robot.get_chunk()
    assert len(robot.commanded(1)) == 1
