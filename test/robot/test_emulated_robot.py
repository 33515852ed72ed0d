# SPDX-License-Identifier: Apache-2.0
"""Robots that only ask: their closed loop, what they send, and which answers they believe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.errors import Reason
from xinfer_ros.robot.emulated_robot import (
    EmulatedAnswer,
    EmulatedRobot,
    EmulatedRobotPlan,
    first_sends_ns,
)

MS = 1_000_000
START, TE, HORIZON = 10_000 * MS, 180 * MS, 16


def robot(**changes: object) -> EmulatedRobot:
    """Return a robot of 3 s with a budget of 90 ms."""
    values = {
        'number': 4,
        'start_ns': START,
        'end_ns': START + 3_000 * MS,
        'minimum_period_ns': TE,
        'budgets_ns': np.array([90 * MS]),
        **changes,
    }
    return EmulatedRobot(EmulatedRobotPlan(**values))


def answer(request_id: int, **changes: object) -> EmulatedAnswer:
    """Return a good answer."""
    values = {
        'is_ours': True,
        'reason': Reason.OK,
        'rows': np.zeros((HORIZON, 2), np.float32),
        **changes,
    }
    return EmulatedAnswer(request_id=request_id, **values)


@given(st.lists(st.integers(1, 900), min_size=20, max_size=20))
def test_next_request_leaves_after_the_period_or_the_answer(delays_ms: list[int]) -> None:
    """Rule: s' = max(s + TE, r), and one that gets no answer is given up after max(2 b, 0.5 s)."""
    asked, each = robot(), iter(delays_ms * 3)
    expected = START
    while (due_ns := asked.due_ns) is not None:
        assert due_ns == expected
        draft = asked.send(due_ns)
        received_ns = due_ns + next(each) * MS
        lost_ns = due_ns + 500 * MS
        assert asked.is_waiting
        assert asked.due_ns == lost_ns
        if received_ns < lost_ns:
            assert asked.take(received_ns, answer(draft.request_id))
            expected = max(due_ns + TE, received_ns)
        else:
            assert asked.give_up(lost_ns)
            expected = lost_ns
    log = asked.log()
    assert expected >= START + 3_000 * MS
    assert (log.sent_ns == log.due_ns).all()
    assert np.diff(log.sent_ns).min(initial=TE) >= TE


def test_requests_carry_what_is_left_of_the_last_chunk() -> None:
    """RT-01: rows are executed by time from the instant in which the chunk came."""
    asked = robot(spacing_ns=30 * MS)
    first = asked.send(START)
    rows = np.arange(2 * HORIZON, dtype=np.float32).reshape(HORIZON, 2)
    asked.take(START + 60 * MS, answer(first.request_id, rows=rows, start_step=0))
    second = asked.send(START + TE)
    assert (second.executed_steps, len(second.leftover)) == (4, HORIZON - 4)
    assert (second.leftover == rows[4:]).all()
    asked.take(START + TE + 60 * MS, answer(second.request_id, start_step=4))
    third = asked.send(START + 2 * TE)
    assert third.executed_steps == 10  # two while it waited, four since
    assert len(third.leftover) == HORIZON - 6


def test_commitment_covers_the_response_and_never_more_than_is_left() -> None:
    asked = robot(spacing_ns=30 * MS, budgets_ns=np.array([400 * MS]))
    for round in range(4):
        due_ns = asked.due_ns
        assert due_ns is not None
        draft = asked.send(due_ns)
        asked.take(due_ns + 100 * MS, answer(draft.request_id))
        if round == 0:
            assert draft.commitment_steps == 0  # there is nothing to promise
    assert draft.commitment_steps == 5  # four rows in 100 ms, and a margin of one


def test_robot_that_runs_dry_asks_without_leftover() -> None:
    asked = robot(spacing_ns=5 * MS)
    draft = asked.send(START)
    asked.take(START + 10 * MS, answer(draft.request_id))
    later = asked.send(START + TE)
    assert (later.executed_steps, len(later.leftover), later.commitment_steps) == (16, 0, 0)


@pytest.mark.parametrize(
    'changes',
    [
        {'is_ours': False},
        {'request_id': 99},
        {'request_id': 0},
        {'start_step': 3},
    ],
    ids=['session', 'never sent', 'before the first', 'start step'],
)
def test_answer_of_somebody_else_is_counted_and_changes_nothing(changes: dict) -> None:
    """CQ-06, SL-01: ids decide, never the order of arrival."""
    asked = robot()
    draft = asked.send(START)
    wrong = answer(**{'request_id': draft.request_id, **changes})
    assert not asked.take(START + MS, wrong)
    assert asked.is_waiting
    assert asked.take(START + 2 * MS, answer(draft.request_id))
    log = asked.log()
    assert log.wrong.tolist() == [1]
    assert log.received_ns.tolist() == [START + 2 * MS]


def test_second_answer_to_a_request_is_wrong() -> None:
    asked = robot()
    draft = asked.send(START)
    for _ in range(2):
        asked.take(START + MS, answer(draft.request_id))
    assert asked.log().wrong.tolist() == [1]


def test_answer_after_the_retry_is_noted_but_not_waited_for() -> None:
    asked = robot()
    late = asked.send(START)
    asked.give_up(START + 500 * MS)
    asked.send(START + 500 * MS)
    assert not asked.take(START + 510 * MS, answer(late.request_id))
    assert asked.is_waiting
    assert asked.log().received_ns.tolist() == [START + 510 * MS, 0]


def test_refused_robot_pauses() -> None:
    asked = robot(backoff_ns=400 * MS)
    draft = asked.send(START)
    asked.take(START + 5 * MS, answer(draft.request_id, reason=Reason.NOT_READY))
    assert asked.due_ns == START + 405 * MS
    assert asked.log().reason.tolist() == [int(Reason.NOT_READY)]


@pytest.mark.parametrize(('keeps', 'due_ms'), [(True, 300), (False, 180)])
def test_pace_of_the_server_is_kept_or_ignored(keeps: bool, due_ms: int) -> None:
    asked = robot(keeps_pace=keeps)
    draft = asked.send(START)
    asked.take(START + MS, answer(draft.request_id, ask_after_ns=300 * MS))
    assert asked.due_ns == START + due_ms * MS


def test_budgets_are_run_through_in_turn() -> None:
    asked = robot(budgets_ns=np.array([90, 400]) * MS)
    found = []
    while (due_ns := asked.due_ns) is not None and len(found) < 4:
        draft = asked.send(due_ns)
        found.append(draft.budget_ns // MS)
        asked.take(due_ns + MS, answer(draft.request_id))
    assert found == [90, 400, 90, 400]


@given(st.integers(1, 64), st.integers(0, 9))
def test_first_sends_are_spread_evenly_over_a_period(robots: int, seed: int) -> None:
    sends = first_sends_ns(robots, TE, seed)
    assert (np.sort(sends) == np.arange(robots) * TE // robots).all()
    assert (sends == first_sends_ns(robots, TE, seed)).all()
