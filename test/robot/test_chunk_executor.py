# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the loop: which row is next, when to ask, and which answers to believe."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.chunk_executor import ChunkExecutor, RequestDraft
from xinfer_ros.robot.session import Grant

from .driven_robot import GRANT, MS, TICK_NS, DrivenRobot, numbered_rows


def _moving_robot(queued: int = 50, **changes) -> DrivenRobot:
    """Return a robot that has just received its first chunk."""
    robot = DrivenRobot(**changes)
    assert robot.answer(robot.ask_when_due(), numbered_rows(0, queued)) is Reason.OK
    return robot


def test_chunk_for_a_robot_at_rest_begins_with_its_first_row() -> None:
    """CQ-01: 30 rows, 700 ms after their observation, empty queue: 0 rows are skipped."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.tick(21) == [None] * 21  # 700 ms at rest
    assert robot.answer(draft, numbered_rows(0, 30)) is Reason.OK
    assert robot.steps(30) == list(range(30))


def test_exactly_the_executed_rows_are_skipped() -> None:
    """CQ-01: 7 rows executed while latency says 21: exactly 7 are skipped."""
    robot = _moving_robot(queued=7)
    draft = robot.ask_when_due()
    robot.tick(21)  # 700 ms: 7 rows, then starved
    assert robot.executor.report().executed_steps == 7
    assert robot.answer(draft, numbered_rows(0, 30)) is Reason.OK
    assert robot.steps(40) == list(range(7, 30))


def test_pause_adds_nothing_to_the_skip() -> None:
    """CQ-01: 7 rows executed, then 400 ms in which none is: 7 are skipped."""
    robot = _moving_robot(queued=7, budget_ns=2000 * MS)
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
    robot = _moving_robot(commitment_steps=commitment)
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
    robot = _moving_robot()
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
    robot = _moving_robot()
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


BAD = {
    'one NaN in row 20': (20, np.nan),
    'one +inf': (20, np.inf),
    'one -inf': (49, -np.inf),
}


@pytest.mark.parametrize(('row', 'value'), BAD.values(), ids=list(BAD))
def test_chunk_that_is_not_finite_is_refused_and_the_queue_goes_on(row: int, value: float) -> None:
    """CQ-10: at the executor's ingress; the counter rises by one."""
    names = tuple('abcdefg')
    robot = DrivenRobot(names)
    robot.answer(robot.ask_when_due())
    robot.tick(5)
    draft = robot.ask_when_due()
    rows = numbered_rows(5, 50, 7)
    rows[row, 3] = value
    assert robot.answer(draft, rows) is Reason.REJECTED_ROWS
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.steps(45) == list(range(5, 50))


def test_chunk_without_rows_is_refused_and_the_queue_goes_on() -> None:
    """CQ-10: 0 rows."""
    robot = _moving_robot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, np.zeros((0, 2), np.float32)) is Reason.REJECTED_ROWS
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.steps(60) == list(range(50))


def test_no_fuzzed_chunk_ever_brings_a_value_that_is_not_finite() -> None:
    """CQ-10: 10 000 fuzzed chunks."""
    generator = np.random.default_rng(10)
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0], np.float32)
    robot = DrivenRobot(backoff_ns=10 * MS, minimum_period_ns=10 * MS)
    refused = accepted = 0
    for _ in range(10_000):
        draft = robot.ask()
        assert draft is not None
        shape = generator.integers(0, 6), generator.choice([2, 2, 2, 2, 2, 1, 3])
        rows = generator.standard_normal(shape).astype(np.float32)
        bad = generator.random(shape) < generator.choice([0, 0.02, 0.5])
        rows[bad] = generator.choice(odd, int(bad.sum()))
        good = rows.shape[1] == 2 and len(rows) > 0 and bool(np.isfinite(rows).all())
        reason = robot.answer(draft, rows)
        assert (reason is Reason.OK) == good
        accepted += good
        refused += not good
        row = robot.executor.tick()
        assert row is None or np.isfinite(row.values).all()
        robot.clock.advance(10 * MS)
    report = robot.executor.report()
    assert (report.chunks, sum(report.reasons.values())) == (accepted, refused)
    assert min(accepted, refused) > 1000


def test_joints_are_assigned_by_name() -> None:
    """CQ-11: robot joints [b, a, c], chunk joints [a, b, c]."""
    robot = DrivenRobot(('b', 'a', 'c'))
    rows = np.tile(np.array([[1, 2, 3]], np.float32), (50, 1))
    draft = robot.ask_when_due()
    assert robot.answer(draft, rows, joint_names=('a', 'b', 'c')) is Reason.OK
    assert robot.executor.tick().values.tolist() == [2, 1, 3]


def test_order_of_joints_may_change_from_chunk_to_chunk() -> None:
    """CQ-11: nothing is remembered of the order of an earlier chunk."""
    robot = DrivenRobot(('b', 'a', 'c'))
    for names in (('a', 'b', 'c'), ('c', 'b', 'a'), ('a', 'b', 'c'), ('b', 'a', 'c')):
        value = {'a': 1, 'b': 2, 'c': 3}
        rows = np.tile(np.array([[value[name] for name in names]], np.float32), (50, 1))
        assert robot.answer(robot.ask_when_due(), rows, joint_names=names) is Reason.OK
        assert robot.executor.tick().values.tolist() == [2, 1, 3]


SIX = tuple('abcdef')


@pytest.mark.parametrize('columns', [5, 7, 32])
@pytest.mark.parametrize('named', [True, False])
def test_surplus_or_missing_columns_are_refused(columns: int, named: bool) -> None:
    """CQ-11: 6 joints and 5, 7 or 32 columns, each named or not; never cut or padded."""
    robot = DrivenRobot(SIX)
    robot.answer(robot.ask_when_due())
    names = tuple(f'{i}' for i in range(columns)) if named else SIX
    rows = np.ones((50, columns), np.float32)
    reason = robot.answer(robot.ask_when_due(), rows, joint_names=names)
    assert reason is Reason.REJECTED_COLUMNS
    assert robot.executor.report().reasons == {Reason.REJECTED_COLUMNS: 1}
    assert robot.executor.tick().values.shape == (6,)


@pytest.mark.parametrize('names', ['abcdex', 'abcdee', 'ABCDEF'])
def test_unknown_or_repeated_joint_name_is_refused(names: str) -> None:
    """CQ-11: the texts that core.chunk gives are tested there."""
    robot = DrivenRobot(SIX)
    reason = robot.answer(robot.ask_when_due(), joint_names=tuple(names))
    assert reason is Reason.REJECTED_COLUMNS
    assert robot.executor.tick() is None


def test_chunk_of_another_spacing_is_refused() -> None:
    """RT-06: rows are played at the robot's own rate or not at all."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, keyframe_spacing_ns=2 * TICK_NS) is Reason.REJECTED_SPACING
    assert robot.tick(1) == [None]


def test_chunk_of_another_session_is_ignored_and_counted() -> None:
    """SE-02: a wrong session nonce."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, session=1) is Reason.WRONG_SESSION
    report = robot.executor.report()
    assert (report.misaddressed, report.reasons) == (1, {Reason.WRONG_SESSION: 1})
    assert robot.tick(1) == [None]
    assert robot.answer(draft) is Reason.OK


def test_answer_of_a_session_that_was_ours_is_late_and_not_misaddressed() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    robot.executor.granted(Grant(session=78, epoch=5, lease_ns=GRANT.lease_ns), 0)
    assert robot.answer(draft) is Reason.WRONG_SESSION
    assert robot.executor.report().misaddressed == 0


def test_chunk_of_an_old_epoch_is_refused() -> None:
    """SL-02: answers of the old epoch are refused, and the robot moves on under the new one."""
    robot = _moving_robot()
    late = robot.ask_when_due()
    now_ns = robot.clock.now_ns()
    robot.executor.session.server_announced(6, ready=True)
    assert robot.ask() is None
    robot.executor.granted(Grant(session=77, epoch=6, lease_ns=GRANT.lease_ns), now_ns)
    fresh = robot.ask_when_due()
    assert robot.clock.now_ns() == now_ns
    assert robot.answer(late) is Reason.WRONG_EPOCH
    assert robot.answer(fresh, epoch=5) is Reason.WRONG_EPOCH
    assert robot.answer(fresh, epoch=6) is Reason.OK
    assert robot.executor.report().epoch == 6


def test_rows_run_out_before_the_robot_holds_when_the_server_dies() -> None:
    """SL-02: 15 queued rows run, the pause comes at the next tick, and requests do not pile up."""
    robot = _moving_robot(queued=15)
    robot.ask_when_due()
    assert robot.steps(15) == list(range(15))
    assert robot.executor.report().phase is ExecutorPhase.HOLDING
    assert robot.tick(3) == [None] * 3
    assert robot.executor.report().starved_ticks == 3


def test_request_that_was_never_sent_cannot_be_answered() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, request_id=draft.request_id + 1) is Reason.WRONG_EPISODE
    assert robot.answer(draft, episode=1) is Reason.WRONG_EPISODE
    assert robot.executor.report().misaddressed == 2
    assert robot.tick(1) == [None]


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
    robot = _moving_robot()
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


events = st.lists(
    st.one_of(
        st.tuples(st.just('pass'), st.integers(0, 600)),
        st.tuples(st.just('tick'), st.integers(1, 60)),
        st.tuples(st.just('ask'), st.just(0)),
        st.tuples(st.sampled_from(['rows', 'refusal', 'nonsense']), st.integers(0, 3)),
        st.tuples(st.just('episode'), st.just(0)),
        st.tuples(st.just('session'), st.just(0)),
    ),
    max_size=60,
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(events)
def test_robot_keeps_its_rules_under_every_order_of_events(
    sequence: list[tuple[str, int]],
) -> None:
    """
    RT-07: no row twice, none left out, one request in flight, and the period kept.

    ``rows``, ``refusal`` and ``nonsense`` answer one of the last four requests, so they come late,
    twice and out of order. A new episode or session withdraws the request and its period.
    """
    robot = DrivenRobot(minimum_period_ns=150 * MS)
    session, drafts = GRANT.session, list[RequestDraft]()
    waiting: RequestDraft | None = None
    sent_ns: dict[int, int] = {}
    not_before_ns = 0
    executed = 0
    queue: list[tuple[int, int]] = []
    for event, value in sequence:
        now_ns = robot.clock.now_ns()
        if event == 'pass':
            robot.clock.advance(value * MS)
        elif event == 'tick':
            for row in robot.tick(value):
                if not queue:
                    assert row is None
                    continue
                step, chunk = queue.pop(0)
                assert row is not None
                assert (row.step, tuple(row.values)) == (executed, (step, chunk))
                assert step == executed
                executed += 1
        elif event == 'ask':
            if waiting is not None:
                age_ns = now_ns - sent_ns[waiting.request_id]
                waiting = None if age_ns >= retry_after_ns(waiting.budget_ns) else waiting
            draft = robot.ask()
            assert (draft is not None) == (waiting is None and now_ns >= not_before_ns)
            if draft is not None:
                assert draft.request_id == len(drafts) + 1
                assert draft.executed_steps == executed
                assert [tuple(row) for row in draft.leftover.tolist()] == queue
                drafts.append(draft)
                waiting, sent_ns[draft.request_id] = draft, now_ns
                not_before_ns = now_ns + 150 * MS
        elif event in ('rows', 'refusal', 'nonsense'):
            if value >= len(drafts):
                continue
            draft = drafts[-1 - value]
            rows = numbered_rows(draft.executed_steps, 30, chunk=draft.request_id)
            changes = {'reason': Reason.EXPIRED} if event == 'refusal' else {}
            if event == 'nonsense':
                rows[7, 1] = np.nan
            reason = robot.answer(draft, rows, **changes)
            skipped = executed - draft.executed_steps
            fits = event == 'rows' and skipped < 30
            assert (reason is Reason.OK) == (draft is waiting and fits)
            if draft is not waiting:
                continue
            waiting = None
            if fits:
                queue = [(s, draft.request_id) for s in range(executed, draft.executed_steps + 30)]
            else:
                not_before_ns = max(not_before_ns, now_ns + 100 * MS)
        elif event == 'episode':
            robot.executor.start_episode()
            queue, waiting, not_before_ns = [], None, 0
        else:
            session += 1
            grant = Grant(session=session, epoch=GRANT.epoch, lease_ns=GRANT.lease_ns)
            robot.executor.granted(grant, now_ns)
            if waiting is not None:
                waiting, not_before_ns = None, 0
    report = robot.executor.report()
    assert (report.executed_steps, report.queued_steps) == (executed, len(queue))
    assert report.requests == len(drafts)
    assert report.misaddressed == 0
