# SPDX-License-Identifier: Apache-2.0
"""Chunks that come when their frozen rows are over, and what a robot reports of it."""

import pytest

from xinfer_ros.errors import Reason
from xinfer_ros.robot.session import Grant

from .driven_robot import GRANT, MS, TICK_NS, DrivenRobot, numbered_rows


def _asked_robot(leftover: int = 50, **changes: int) -> DrivenRobot:
    """Return a robot whose first chunk has just come."""
    robot = DrivenRobot(**changes)
    assert robot.answer(robot.ask_when_due(), numbered_rows(0, leftover)) is Reason.OK
    return robot


@pytest.mark.parametrize('horizon', [16, 50])
def test_chunks_later_than_the_longest_commitment_are_played_and_not_discarded(
    horizon: int,
) -> None:
    """
    RT-02: a delay of 9 rows for 5 chunks, at most 8 are frozen: each is played as degraded.

    The queue is never empty once a chunk is at hand, and no row is played twice or left out.
    """
    robot = DrivenRobot(commitment_steps=9, minimum_period_ns=TICK_NS)
    assert robot.answer(robot.ask_when_due(), numbered_rows(0, horizon)) is Reason.OK
    steps = robot.steps(1)
    for number in range(1, 6):
        draft = robot.ask_when_due()
        assert draft.commitment_steps == min(9, len(draft.leftover))
        steps += robot.steps(9)
        late = numbered_rows(draft.executed_steps, horizon, chunk=number)
        assert robot.answer(draft, late, frozen_steps=8, degraded=True) is Reason.OK
        report = robot.executor.report()
        executed = report.executed_steps - draft.executed_steps
        assert report.queued_steps == horizon - executed > 0
        steps += robot.steps(1)
    report = robot.executor.report()
    assert steps == list(range(len(steps)))
    assert (report.chunks, report.degraded_chunks, report.reasons.total()) == (6, 5, 0)
    if horizon == 50:
        assert report.starved_ticks == 0
        assert report.handoff_violations == 5


@pytest.mark.parametrize(
    ('executed', 'violations', 'overfrozen'), [(0, 0, 6), (4, 0, 2), (6, 0, 0), (7, 1, 0)]
)
def test_report_tells_whether_the_frozen_rows_covered_the_response(
    executed: int, violations: int, overfrozen: int
) -> None:
    """A response after t + d·Δ is a violation; one long before it froze rows for nothing."""
    robot = _asked_robot()
    draft = robot.ask_when_due()
    robot.tick(executed)
    robot.answer(draft, frozen_steps=draft.commitment_steps)
    report = robot.executor.report()
    assert (report.handoff_violations, report.overfrozen_steps) == (violations, overfrozen)
    assert (report.degraded_chunks, report.commitment_steps) == (0, 6)


def test_starved_robot_has_violated_nothing() -> None:
    """Its whole leftover was frozen and was executed: no row of the old chunk was cut short."""
    robot = _asked_robot(leftover=4)
    draft = robot.ask_when_due()
    robot.tick(9)
    assert robot.answer(draft, frozen_steps=4) is Reason.OK
    assert robot.executor.report().handoff_violations == 0


def test_absurd_number_of_frozen_rows_does_not_spoil_the_report() -> None:
    robot = _asked_robot()
    robot.answer(robot.ask_when_due(), frozen_steps=2**32 - 1)
    assert robot.executor.report().overfrozen_steps == 50


def _respond(robot: DrivenRobot, response_ms: int) -> int:
    """Ask, answer after a time, and return what was promised."""
    draft = robot.ask_when_due()
    robot.clock.advance(response_ms * MS)
    assert robot.answer(draft) is Reason.OK
    return draft.commitment_steps


def test_measured_commitment_follows_the_responses() -> None:
    """RT-04: the cold first response never counts; d is the longest of late and the margin."""
    robot = DrivenRobot(commitment_steps=6, commitment_margin_steps=1, budget_ns=400 * MS)
    promised = [_respond(robot, response_ms) for response_ms in (350, *[99] * 25)]
    assert promised[:2] == [0, 6]  # no leftover, then the start value
    assert promised[2:] == [4] * 24


def test_measured_commitment_keeps_to_what_the_server_honours_and_to_the_budget() -> None:
    robot = DrivenRobot(commitment_margin_steps=0, budget_ns=400 * MS)
    granted = Grant(session=77, epoch=6, lease_ns=GRANT.lease_ns, max_commitment_steps=8)
    robot.executor.granted(granted, robot.clock.now_ns())

    def respond(response_ms: int) -> int:
        draft = robot.ask_when_due()
        robot.clock.advance(response_ms * MS)
        assert robot.answer(draft, epoch=6) is Reason.OK
        return draft.commitment_steps

    assert [respond(ms) for ms in (100, 300, 300)] == [0, 6, 8]  # 9 rows and a bit
    robot.executor.set_budget(150 * MS)
    assert respond(100) == 5


def test_new_session_is_cold_again_and_a_renewal_is_not() -> None:
    robot = DrivenRobot(commitment_margin_steps=0, budget_ns=400 * MS)
    for response_ms in (300, 99):
        _respond(robot, response_ms)
    robot.executor.granted(GRANT, robot.clock.now_ns())
    _respond(robot, 130)
    assert _respond(robot, 99) == 4
    robot.executor.granted(
        Grant(session=77, epoch=6, lease_ns=GRANT.lease_ns), robot.clock.now_ns()
    )
    draft = robot.ask_when_due()
    robot.clock.advance(300 * MS)
    assert robot.answer(draft, epoch=6) is Reason.OK
    assert robot.ask_when_due().commitment_steps == 4


def test_session_that_was_lost_and_is_the_same_again_is_warm_and_its_request_is_over() -> None:
    robot = DrivenRobot(commitment_margin_steps=0, budget_ns=400 * MS)
    for response_ms in (300, 99):
        _respond(robot, response_ms)
    robot.ask_when_due()
    robot.executor.session.unknown()
    robot.executor.granted(GRANT, robot.clock.now_ns())
    assert robot.executor.report().unanswered == 1
    again = robot.ask()
    assert again is not None
    robot.clock.advance(130 * MS)
    assert robot.answer(again) is Reason.OK
    assert robot.ask_when_due().commitment_steps == 4


def test_fixed_commitment_is_what_was_set() -> None:
    """The server lowers it and says so; a robot that was told a number does not argue."""
    robot = DrivenRobot(commitment_steps=30, budget_ns=400 * MS)
    assert [_respond(robot, 99) for _ in range(4)] == [0, 30, 30, 30]
