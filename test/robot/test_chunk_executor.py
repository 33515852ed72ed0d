# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the loop: which row is next, when to ask, and which answers to believe."""

import itertools

import numpy as np
import pytest

from xinfer_ros.errors import Reason

from .driven_robot import MS, DrivenRobot, moving_robot, numbered_rows


def test_chunk_for_a_robot_at_rest_begins_with_its_first_row() -> None:
    """CQ-01: 30 rows, 700 ms after their observation, empty queue: 0 rows are skipped."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.tick(21) == [None] * 21  # 700 ms at rest
    assert robot.answer(draft, numbered_rows(0, 30)) is Reason.OK
    assert robot.steps(30) == list(range(30))


def test_exactly_the_executed_rows_are_skipped() -> None:
    """CQ-01: 7 rows executed while latency says 21: exactly 7 are skipped."""
    robot = moving_robot(queued=7)
    draft = robot.ask_when_due()
    robot.tick(21)  # 700 ms: 7 rows, then starved
    assert robot.executor.report().executed_steps == 7
    assert robot.answer(draft, numbered_rows(0, 30)) is Reason.OK
    assert robot.steps(40) == list(range(7, 30))


def test_pause_adds_nothing_to_the_skip() -> None:
    """CQ-01: 7 rows executed, then 400 ms in which none is: 7 are skipped."""
    robot = moving_robot(queued=7, budget_ns=2000 * MS)
    draft = robot.ask_when_due()
    robot.tick(7)
    robot.clock.advance(400 * MS)
    assert robot.answer(draft, numbered_rows(0, 30)) is Reason.OK
    row = robot.executor.tick()
    assert row is not None
    assert (row.step, row.values[0]) == (7, 7)


@pytest.mark.parametrize('commitment', [0, 1, 5, 49])
def test_promised_rows_are_those_that_run_next(commitment: int) -> None:
    """RT-01: 10 rows of A executed at the send: the leftover begins with A[10]; C[5] runs next."""
    robot = moving_robot(commitment_steps=commitment)
    robot.tick(10)
    draft = robot.ask_when_due()
    assert draft.executed_steps == 10
    assert draft.leftover[:, 0].tolist() == list(range(10, 50))
    assert draft.commitment_steps == min(commitment, 40)
    robot.tick(5)
    robot.answer(draft, numbered_rows(10, 50, chunk=3))
    row = robot.executor.tick()
    assert row is not None
    assert row.values.tolist() == [15, 3]


@pytest.mark.parametrize(
    ('response_ms', 'next_ms'), [(300, 500), (900, 900), (None, 2000)], ids=str
)
def test_next_request_leaves_at_the_later_of_period_and_answer(
    response_ms: int | None, next_ms: int
) -> None:
    """RT-07: s = 0, TE = 500 ms: r = 300 → 500, r = 900 → 900, r never → after the timeout."""
    robot = DrivenRobot(minimum_period_ns=500 * MS, budget_ns=1000 * MS)
    draft = robot.ask_when_due()
    sent_ns = robot.clock.now_ns()
    if response_ms is not None:
        robot.clock.advance(response_ms * MS)
        assert robot.answer(draft) is Reason.OK
    robot.ask_when_due()
    assert robot.clock.now_ns() - sent_ns == next_ms * MS


@pytest.mark.parametrize(('budget_ms', 'retry_ms'), [(180, 500), (400, 800)])
def test_lost_request_is_followed_by_a_new_one_in_time(budget_ms: int, retry_ms: int) -> None:
    """CQ-04: within max(2·B, 500 ms); empty queue, motionless robot, the very first request."""
    robot = DrivenRobot(budget_ns=budget_ms * MS)
    first = robot.ask_when_due()
    sent_ns = robot.clock.now_ns()
    second = robot.ask_when_due()
    assert robot.clock.now_ns() - sent_ns == retry_ms * MS
    assert second.request_id == first.request_id + 1
    assert robot.executor.report().unanswered == 1


def test_five_losses_in_a_row_do_not_stop_a_robot() -> None:
    """CQ-04: the same after 5 losses in a row; the answer to the sixth moves it."""
    robot = DrivenRobot()
    ids, sent_ns = [], []
    for _ in range(6):
        draft = robot.ask_when_due()
        ids.append(draft.request_id)
        sent_ns.append(robot.clock.now_ns())
    gaps = [after - before for before, after in itertools.pairwise(sent_ns)]
    assert ids == [1, 2, 3, 4, 5, 6]
    assert gaps == [500 * MS] * 5
    assert robot.executor.report().unanswered == 5
    assert robot.answer(draft) is Reason.OK
    assert robot.steps(1) == [0]


def test_first_request_of_an_episode_may_be_lost_like_any_other() -> None:
    """CQ-04: the very first observation of an episode."""
    robot = moving_robot()
    robot.executor.start_episode()
    robot.ask_when_due()
    sent_ns = robot.clock.now_ns()
    again = robot.ask_when_due()
    assert robot.clock.now_ns() - sent_ns == 500 * MS
    assert robot.answer(again) is Reason.OK


def test_late_answer_is_no_chunk_but_the_request_was_not_unanswered() -> None:
    """CQ-06: it is counted once, however often it arrives."""
    robot = DrivenRobot()
    late = robot.ask_when_due()
    fresh = robot.ask_when_due()
    assert robot.executor.report().unanswered == 1
    for _ in range(3):
        assert robot.answer(late) is Reason.STALE_CHUNK
    assert robot.executor.report().unanswered == 0
    assert robot.answer(fresh) is Reason.OK


def test_every_request_of_a_motionless_robot_is_asked() -> None:
    """CQ-04: there is no similarity test; equal observations are asked as often as others."""
    robot = DrivenRobot()
    drafts = []
    for _ in range(20):
        draft = robot.ask_when_due()
        drafts.append(draft)
        robot.answer(draft, reason=Reason.NOT_READY, rows=np.zeros((0, 0), np.float32))
    assert [draft.request_id for draft in drafts] == list(range(1, 21))
    assert {draft.executed_steps for draft in drafts} == {0}


def test_robot_registers_again_while_its_requests_stay_unanswered() -> None:
    """CQ-04: a server that forgot this robot during an outage never hears its requests again."""
    robot = DrivenRobot()
    asked = 0
    for _ in range(
        60
    ):  # 2 s in which each request is lost; the order is that of the executor node
        now_ns = robot.clock.now_ns()
        if robot.executor.session.due(now_ns):
            robot.executor.session.asked(now_ns)
            asked += 1
        robot.ask()
        robot.tick(1)
    assert robot.executor.report().unanswered >= 2
    assert asked >= 1


def test_new_episode_empties_the_queue_and_refuses_what_is_under_way() -> None:
    """CQ-05: 37 rows queued and one request in flight when episode k + 1 starts."""
    robot = moving_robot()
    robot.tick(13)
    assert robot.executor.report().queued_steps == 37
    late = robot.ask_when_due()
    assert robot.executor.start_episode() == 1
    assert robot.executor.report().queued_steps == 0
    assert robot.tick(1) == [None]
    assert robot.answer(late, numbered_rows(13, 50, chunk=9)) is Reason.WRONG_EPISODE
    assert robot.executor.report().reasons == {Reason.WRONG_EPISODE: 1}
    assert robot.executor.report().misaddressed == 0
    assert robot.tick(1) == [None]
    fresh = robot.ask_when_due()
    assert fresh.episode == 1
    assert len(fresh.leftover) == 0
    robot.answer(fresh, numbered_rows(fresh.executed_steps, 50, chunk=1))
    assert robot.tick(1)[0].values[1] == 1


def test_answers_are_matched_by_id_and_never_by_order() -> None:
    """CQ-06: answers to 7 and 8 arrive as 8, 7, 8: the queue is that after 8 alone."""
    robot = DrivenRobot()
    for _ in range(6):
        robot.answer(robot.ask_when_due())
    robot.tick(3)
    seventh = robot.ask_when_due()
    eighth = robot.ask_when_due()  # 7 was given up
    assert (seventh.request_id, eighth.request_id) == (7, 8)
    before = robot.executor.report()
    robot.tick(2)
    start = eighth.executed_steps
    assert robot.answer(eighth, numbered_rows(start, 50, chunk=8)) is Reason.OK
    queued = robot.executor.report().queued_steps
    old = numbered_rows(seventh.executed_steps, 50, chunk=7)
    assert robot.answer(seventh, old) is Reason.STALE_CHUNK
    assert robot.answer(eighth, numbered_rows(start, 50, chunk=88)) is Reason.DUPLICATE_CHUNK
    after = robot.executor.report()
    assert after.queued_steps == queued
    assert after.reasons - before.reasons == {Reason.STALE_CHUNK: 1, Reason.DUPLICATE_CHUNK: 1}
    assert after.misaddressed == 0
    rows = [row for row in robot.tick(60) if row is not None]
    assert [row.step for row in rows] == list(range(start + 2, start + 50))
    assert {float(row.values[1]) for row in rows} == {8}
