# SPDX-License-Identifier: Apache-2.0
"""When a robot asks again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.robot.next_send import InFlight, NextSend

MS = 1_000_000


def _request(request_id: int, budget_ns: int, sent_ns: int) -> InFlight:
    return InFlight(request_id=request_id, sent_ns=sent_ns, budget_ns=budget_ns, executed_steps=0)


def _first_due_ms(rule: NextSend, from_ms: int) -> int:
    """Return the first millisecond at which a request may leave; lost ones are given up."""
    for now_ms in range(from_ms, from_ms + 10_000):
        rule.give_up_if_lost(now_ms * MS)
        if rule.is_due(now_ms * MS):
            return now_ms
    raise AssertionError('never due')


def test_first_request_leaves_at_once() -> None:
    assert NextSend(500 * MS, 100 * MS).is_due(0)


@pytest.mark.parametrize(('answered_ms', 'next_ms'), [(300, 500), (500, 500), (900, 900)])
def test_next_send_is_the_later_of_period_and_answer(answered_ms: int, next_ms: int) -> None:
    """RT-07: s = 0 and TE = 500 ms: r = 300 → s' = 500; r = 900 → s' = 900."""
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 1000 * MS, 0))
    for now_ms in range(answered_ms):
        assert not rule.is_due(now_ms * MS)
    rule.answered(answered_ms * MS, with_rows=True)
    assert _first_due_ms(rule, answered_ms) == next_ms


def test_request_without_any_answer_is_asked_anew_after_the_timeout() -> None:
    """RT-07: r never → retry after the timeout, not never."""
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 400 * MS, 0))
    assert _first_due_ms(rule, 0) == 800


def test_loss_is_not_made_longer_by_the_period() -> None:
    """CQ-04: within max(2·B, 500 ms), however seldom the robot asks."""
    rule = NextSend(1500 * MS, 100 * MS)
    rule.sent(_request(1, 180 * MS, 0))
    assert _first_due_ms(rule, 0) == 500


def test_only_the_request_in_flight_is_given_up_and_only_once() -> None:
    rule = NextSend(100 * MS, 100 * MS)
    assert rule.give_up_if_lost(10**12) is None
    rule.sent(_request(4, 180 * MS, 0))
    assert rule.give_up_if_lost(500 * MS - 1) is None
    lost = rule.give_up_if_lost(500 * MS)
    assert lost is not None
    assert lost.request_id == 4
    assert rule.give_up_if_lost(500 * MS) is None
    assert rule.in_flight is None


@pytest.mark.parametrize(
    ('ask_after_ms', 'answered_ms', 'next_ms'),
    [(0, 300, 500), (400, 300, 500), (700, 300, 700), (700, 900, 900)],
)
def test_pace_of_the_server_lengthens_the_period_and_never_shortens_it(
    ask_after_ms: int, answered_ms: int, next_ms: int
) -> None:
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 1000 * MS, 0))
    rule.answered(answered_ms * MS, with_rows=True, ask_after_ns=ask_after_ms * MS)
    assert _first_due_ms(rule, answered_ms) == next_ms


def test_pace_holds_for_one_request() -> None:
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 1000 * MS, 0))
    rule.answered(300 * MS, with_rows=True, ask_after_ns=700 * MS)
    rule.sent(_request(2, 1000 * MS, 700 * MS))
    rule.answered(800 * MS, with_rows=True)
    assert rule.due_ns == 1200 * MS


def test_pace_with_a_refusal_leaves_the_later_of_both() -> None:
    rule = NextSend(50 * MS, 100 * MS)
    rule.sent(_request(1, 180 * MS, 0))
    rule.answered(20 * MS, with_rows=False, ask_after_ns=90 * MS)
    assert rule.due_ns == 120 * MS
    rule.sent(_request(2, 180 * MS, 200 * MS))
    rule.answered(210 * MS, with_rows=False, ask_after_ns=150 * MS)
    assert rule.due_ns == 350 * MS


def test_next_request_is_due_when_it_says() -> None:
    rule = NextSend(500 * MS, 100 * MS)
    assert rule.due_ns is None
    rule.sent(_request(1, 1000 * MS, 30 * MS))
    assert rule.due_ns == 530 * MS
    rule.answered(100 * MS, with_rows=True)
    assert rule.due_ns == 530 * MS
    assert not rule.is_due(530 * MS - 1)
    assert rule.is_due(530 * MS)
    rule.withdraw()
    assert rule.due_ns is None


def test_refusal_is_followed_by_a_pause() -> None:
    rule = NextSend(50 * MS, 100 * MS)
    rule.sent(_request(1, 180 * MS, 0))
    rule.answered(20 * MS, with_rows=False)
    assert _first_due_ms(rule, 20) == 120


def test_pause_after_a_refusal_never_shortens_the_period() -> None:
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 180 * MS, 0))
    rule.answered(20 * MS, with_rows=False)
    assert _first_due_ms(rule, 20) == 500


def test_withdrawn_request_makes_room_at_once() -> None:
    rule = NextSend(500 * MS, 100 * MS)
    rule.sent(_request(1, 180 * MS, 0))
    rule.withdraw()
    assert rule.in_flight is None
    assert rule.is_due(0)


events = st.lists(
    st.one_of(
        st.tuples(st.just('pass'), st.integers(0, 1200)),
        st.tuples(st.just('send'), st.integers(5, 600)),
        st.tuples(st.just('rows'), st.just(0)),
        st.tuples(st.just('refusal'), st.just(0)),
    ),
    max_size=60,
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.integers(10, 1500), st.integers(10, 300), events)
def test_one_request_in_flight_and_never_sooner_than_the_period(
    period_ms: int, backoff_ms: int, sequence: list[tuple[str, int]]
) -> None:
    """RT-07: s' = max(s + TE, r), at most one request outstanding; a lost one has no period."""
    clock, rule = SimulatedClock(), NextSend(period_ms * MS, backoff_ms * MS)
    last_sent_ns: int | None = None
    refused_ns: int | None = None
    waiting: tuple[int, int] | None = None  # sent, budget
    for number, (event, value) in enumerate(sequence):
        now_ns = clock.now_ns()
        if event == 'pass':
            clock.advance(value * MS)
        elif event == 'send':
            lost = rule.give_up_if_lost(now_ns)
            over = waiting is not None and now_ns - waiting[0] >= retry_after_ns(waiting[1])
            assert (lost is not None) == over
            if over:
                waiting = last_sent_ns = refused_ns = None
            free = waiting is None
            rested = last_sent_ns is None or now_ns >= last_sent_ns + period_ms * MS
            calm = refused_ns is None or now_ns >= refused_ns + backoff_ms * MS
            assert rule.is_due(now_ns) == (free and rested and calm)
            if rule.is_due(now_ns):
                rule.sent(_request(number, value * MS, now_ns))
                last_sent_ns, refused_ns = now_ns, None
                waiting = (now_ns, value * MS)
        elif waiting is not None and rule.in_flight is not None:
            rule.answered(now_ns, with_rows=event == 'rows')
            waiting = None
            refused_ns = now_ns if event == 'refusal' else None
        assert (rule.in_flight is not None) == (waiting is not None)


def test_sends_in_ten_seconds_do_not_exceed_the_period() -> None:
    """Also seen (lerobot robot_client): at most ceil(10 s / TE) + 1, however fast answers are."""
    rule, sends = NextSend(180 * MS, 100 * MS), 0
    for now_ms in range(10_000):
        if rule.is_due(now_ms * MS):
            rule.sent(_request(sends, 180 * MS, now_ms * MS))
            rule.answered(now_ms * MS, with_rows=True)
            sends += 1
    assert sends <= -(-10_000 // 180) + 1
