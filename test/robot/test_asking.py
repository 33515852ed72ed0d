# SPDX-License-Identifier: Apache-2.0
"""When an executor asks, with which budget, and what it reports."""

import numpy as np
import pytest

from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.chunk_executor import ChunkExecutor

from .driven_robot import MS, DrivenRobot, moving_robot, numbered_rows


def test_refusal_is_counted_and_answered_with_a_pause() -> None:
    robot = DrivenRobot(minimum_period_ns=10 * MS)
    draft = robot.ask_when_due()
    empty = np.zeros((0, 0), np.float32)
    assert robot.answer(draft, empty, reason=Reason.REJECTED_IMAGE) is Reason.REJECTED_IMAGE
    assert robot.executor.report().reasons == {Reason.REJECTED_IMAGE: 1}
    answered_ns = robot.clock.now_ns()
    robot.ask_when_due()
    assert robot.clock.now_ns() - answered_ns == 100 * MS


@pytest.mark.parametrize(
    ('pace_ms', 'next_ms'), [(0, 180), (100, 180), (250, 250), (400, 400), (900, 400), (-5, 180)]
)
def test_the_servers_pace_shifts_the_next_request_but_never_beyond_the_budget(
    pace_ms: int, next_ms: int
) -> None:
    """Next send s' = max(s + max(TE, pace), r): the rows are used at once, whatever the pace."""
    robot = DrivenRobot(budget_ns=400 * MS)
    draft = robot.ask_when_due()
    sent_ns = robot.clock.now_ns()
    robot.clock.advance(50 * MS)
    assert robot.answer(draft, ask_after_ns=pace_ms * MS) is Reason.OK
    assert robot.executor.tick() is not None
    robot.ask_when_due()
    assert robot.clock.now_ns() - sent_ns == next_ms * MS


def test_an_answer_that_comes_after_its_pace_is_followed_at_once() -> None:
    robot = DrivenRobot(budget_ns=400 * MS)
    draft = robot.ask_when_due()
    robot.clock.advance(390 * MS)
    answered_ns = robot.clock.now_ns()
    robot.answer(draft, ask_after_ns=300 * MS)
    robot.ask_when_due()
    assert robot.clock.now_ns() == answered_ns


def test_a_request_says_how_often_the_robot_may_ask() -> None:
    assert DrivenRobot(minimum_period_ns=150 * MS).ask_when_due().minimum_period_ns == 150 * MS


def test_unknown_session_makes_the_robot_register_again() -> None:
    robot = DrivenRobot()
    empty = np.zeros((0, 0), np.float32)
    robot.answer(robot.ask_when_due(), empty, reason=Reason.UNKNOWN_SESSION)
    assert robot.executor.session.grant is None
    assert robot.executor.session.due(robot.clock.now_ns())
    assert robot.executor.report().phase is ExecutorPhase.REGISTERING


def test_no_request_leaves_without_a_session() -> None:
    robot = DrivenRobot()
    fresh = ChunkExecutor(robot.settings)
    assert not fresh.request_is_due(0)
    assert fresh.begin_request(0) is None
    assert fresh.report().requests == 0


def test_budget_counts_for_the_request_in_flight_and_those_to_come() -> None:
    """A Budget changes both; the answer that came within the old one alone is late."""
    robot = DrivenRobot()
    first = robot.ask_when_due()
    robot.executor.set_budget(70 * MS)
    robot.clock.advance(100 * MS)
    robot.answer(first)
    second = robot.ask_when_due()
    assert (first.budget_ns, second.budget_ns) == (180 * MS, 70 * MS)
    robot.clock.advance(100 * MS)
    robot.answer(second)
    report = robot.executor.report()
    assert (report.chunks, report.on_time) == (2, 0)
    assert report.latency_p50_ns == 100 * MS


@pytest.mark.parametrize('budget_ns', [0, -1, 10**15])
def test_budget_that_the_server_would_refuse_is_refused_at_once(budget_ns: int) -> None:
    """Else every observation from now on would come back as REJECTED_BUDGET."""
    robot = DrivenRobot()
    with pytest.raises(Rejected, match='REJECTED_BUDGET'):
        robot.executor.set_budget(budget_ns)
    assert robot.ask_when_due().budget_ns == 180 * MS


def test_ticks_before_the_first_row_are_not_starved() -> None:
    robot = DrivenRobot()
    robot.tick(10)
    assert (robot.executor.report().ticks, robot.executor.report().starved_ticks) == (0, 0)
    robot.answer(robot.ask_when_due(), numbered_rows(0, 2))
    robot.tick(5)
    assert (robot.executor.report().ticks, robot.executor.report().starved_ticks) == (5, 3)


def test_unreadable_message_is_counted_and_changes_nothing() -> None:
    robot = moving_robot()
    draft = robot.ask_when_due()
    assert (
        robot.executor.refuse(Rejected(Reason.REJECTED_ROWS, 'unreadable')) is Reason.REJECTED_ROWS
    )
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.answer(draft) is Reason.OK


def test_report_is_a_copy() -> None:
    robot = DrivenRobot()
    robot.executor.refuse(Rejected(Reason.REJECTED_ROWS, 'unreadable'))
    report = robot.executor.report()
    report.reasons.clear()
    report.chunks = 99
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.executor.report().chunks == 0
