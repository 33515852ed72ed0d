# SPDX-License-Identifier: Apache-2.0
"""A robot's place at the server."""

from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.session import ANSWER_TIMEOUT_NS, ASK_AGAIN_NS, Grant, SessionKeeper

MS = 1_000_000
GRANT = Grant(session=11, epoch=3, lease_ns=6000 * MS)
OTHER = Grant(session=12, epoch=4, lease_ns=6000 * MS)
FULL = Rejected(Reason.REJECTED_FLEET_FULL, 'all 8 slots are in use')


def _granted(now_ns: int = 0) -> SessionKeeper:
    keeper = SessionKeeper()
    keeper.asked(now_ns)
    keeper.granted(GRANT, now_ns)
    return keeper


def test_new_robot_asks_at_once_and_then_waits_for_the_answer() -> None:
    keeper = SessionKeeper()
    assert keeper.grant is None
    assert keeper.due(0)
    keeper.asked(0)
    assert not keeper.due(0)
    assert not keeper.due(ANSWER_TIMEOUT_NS - 1)


def test_lost_answer_is_asked_for_again_without_end() -> None:
    keeper = SessionKeeper()
    now_ns = 0
    for _ in range(20):
        assert keeper.due(now_ns)
        keeper.asked(now_ns)
        assert not keeper.due(now_ns + ANSWER_TIMEOUT_NS - 1)
        now_ns += ANSWER_TIMEOUT_NS


def test_grant_is_in_force_and_is_not_asked_for_again() -> None:
    keeper = _granted()
    assert keeper.grant == GRANT
    assert not keeper.due(0)


def test_refused_robot_pauses_half_a_second_and_asks_again_without_end() -> None:
    keeper = SessionKeeper()
    now_ns = 0
    for _ in range(20):
        assert keeper.due(now_ns)
        keeper.asked(now_ns)
        now_ns += 3 * MS
        keeper.refused(FULL, now_ns)
        assert keeper.grant is None
        assert not keeper.due(now_ns + ASK_AGAIN_NS - 1)
        now_ns += ASK_AGAIN_NS
    assert ASK_AGAIN_NS == 500 * MS


def test_refusal_of_a_renewal_ends_the_grant() -> None:
    """LC-03: whoever lost its id must not go on with the old session."""
    keeper = _granted()
    keeper.asked(MS)
    keeper.refused(FULL, 2 * MS)
    assert keeper.grant is None
    assert keeper.refusal == 'REJECTED_FLEET_FULL: all 8 slots are in use'
    assert keeper.due(2 * MS + ASK_AGAIN_NS)
    keeper.granted(OTHER, 3 * MS)
    assert keeper.refusal == ''


def test_lease_is_renewed_after_a_third_of_it_without_a_sign_of_life() -> None:
    keeper = _granted()
    third_ns = GRANT.lease_ns // 3
    assert not keeper.due(third_ns)
    assert keeper.due(third_ns + 1)
    keeper.asked(third_ns + 1)
    assert keeper.grant == GRANT
    keeper.granted(GRANT, third_ns + 2)
    assert not keeper.due(2 * third_ns)
    assert keeper.due(2 * third_ns + 3)


def test_every_request_is_a_sign_of_life() -> None:
    keeper = _granted()
    for now_ms in range(0, 60_000, 180):
        keeper.sent(now_ms * MS)
        assert not keeper.due(now_ms * MS)


def test_another_epoch_ends_the_grant_and_registers_at_once() -> None:
    """SL-02: a robot comes back under the new epoch by itself."""
    keeper = _granted()
    keeper.server_announced(4, ready=True)
    assert keeper.grant is None
    assert keeper.due(0)
    keeper.asked(0)
    keeper.granted(OTHER, MS)
    assert keeper.grant == OTHER
    assert not keeper.due(MS)


def test_another_epoch_that_is_not_ready_ends_the_grant_too() -> None:
    keeper = _granted()
    keeper.server_announced(4, ready=False)
    assert keeper.grant is None


def test_server_that_becomes_ready_ends_the_pause_after_a_refusal() -> None:
    keeper = _granted()
    keeper.server_announced(4, ready=False)
    keeper.asked(0)
    keeper.refused(FULL, MS)
    assert not keeper.due(2 * MS)
    keeper.server_announced(4, ready=True)
    assert keeper.due(2 * MS)


def test_state_that_is_announced_again_and_again_ends_no_pause() -> None:
    """A server that is ready but full would be flooded otherwise."""
    keeper = _granted()
    keeper.server_announced(4, ready=True)
    keeper.asked(0)
    keeper.server_announced(4, ready=True)
    assert not keeper.due(MS)
    keeper.refused(FULL, MS)
    keeper.server_announced(4, ready=True)
    assert not keeper.due(2 * MS)
    assert keeper.due(MS + ASK_AGAIN_NS)


def test_announcement_of_the_same_epoch_changes_nothing() -> None:
    keeper = _granted()
    for ready in (True, False):
        keeper.server_announced(GRANT.epoch, ready=ready)
        assert keeper.grant == GRANT
        assert not keeper.due(0)


def test_unknown_session_is_asked_for_anew() -> None:
    keeper = _granted()
    keeper.unknown()
    assert keeper.grant is None
    assert keeper.due(0)


def test_doubt_renews_the_lease_at_once_and_keeps_the_grant_meanwhile() -> None:
    keeper = _granted()
    keeper.doubted()
    assert keeper.grant == GRANT
    assert keeper.due(500 * MS)
    keeper.asked(500 * MS)
    keeper.granted(GRANT, 510 * MS)
    assert not keeper.due(510 * MS)


def test_doubt_outlives_the_request_that_follows_it() -> None:
    """CQ-04: sending is no proof that anybody listens; only a grant settles the doubt."""
    keeper = _granted()
    keeper.doubted()
    keeper.sent(500 * MS)
    assert keeper.due(501 * MS)


def test_doubt_without_a_grant_is_harmless() -> None:
    keeper = SessionKeeper()
    keeper.doubted()
    assert keeper.grant is None
    assert keeper.due(0)


def test_past_sessions_are_remembered_as_ours() -> None:
    keeper = _granted()
    assert keeper.was_ours(GRANT.session)
    assert not keeper.was_ours(OTHER.session)
    keeper.unknown()
    keeper.granted(OTHER, 0)
    assert keeper.was_ours(GRANT.session)
    assert keeper.was_ours(OTHER.session)


steps = st.lists(
    st.one_of(
        st.tuples(st.just('pass'), st.integers(0, 3000)),
        st.tuples(
            st.sampled_from(['granted', 'refused', 'unknown', 'sent', 'doubted']), st.just(0)
        ),
        st.tuples(st.sampled_from(['ready', 'starting']), st.integers(3, 5)),
        st.tuples(st.just('ask'), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(steps)
def test_robot_without_a_grant_asks_again_within_the_answer_timeout(
    sequence: list[tuple[str, int]],
) -> None:
    """Whatever happened before, a robot never waits for ever: it must come back by itself."""
    clock, keeper = SimulatedClock(), SessionKeeper()
    for event, value in sequence:
        now_ns = clock.now_ns()
        match event:
            case 'pass':
                clock.advance(value * MS)
            case 'granted':
                keeper.granted(GRANT, now_ns)
            case 'refused':
                keeper.refused(FULL, now_ns)
            case 'unknown':
                keeper.unknown()
            case 'sent':
                keeper.sent(now_ns)
            case 'doubted':
                keeper.doubted()
            case 'ready' | 'starting':
                keeper.server_announced(value, ready=event == 'ready')
            case _:
                if keeper.due(now_ns):
                    keeper.asked(now_ns)
    if keeper.grant is None:
        assert keeper.due(clock.now_ns() + max(ANSWER_TIMEOUT_NS, ASK_AGAIN_NS))
    else:
        assert keeper.due(clock.now_ns() + GRANT.lease_ns)
