# SPDX-License-Identifier: Apache-2.0
"""The rules that a robot keeps under every order of events."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.errors import Reason
from xinfer_ros.robot.chunk_executor import RequestDraft
from xinfer_ros.robot.session import Grant

from .driven_robot import GRANT, MS, DrivenRobot, numbered_rows

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
