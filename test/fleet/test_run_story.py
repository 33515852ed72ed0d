# SPDX-License-Identifier: Apache-2.0
"""What is told of a round by its log: requests, units and decisions, and where time went."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.request_account import RequestAccount, accounts
from xinfer_ros.fleet.run_events import (
    Decided,
    Ended,
    Missing,
    Outcome,
    RunEvent,
    Submitted,
    UnitEnded,
)
from xinfer_ros.fleet.run_story import run_events
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.decision_log import LogHeader, LogPart
from xinfer_ros.sched.journal import JournalReader
from xinfer_ros.sched.log_files import DecisionLog
from xinfer_ros.sched.native import NativeCore

from .logged_rounds import logged_round

MS = 1_000_000
S = 1_000 * MS


def _ended(events: Iterable[RunEvent]) -> list[tuple[Ended, RequestAccount]]:
    return [
        (event, account)
        for event, account in accounts(events)
        if isinstance(event, Ended) and account is not None
    ]


@pytest.mark.parametrize('policy', ['xinfer', 'foresight', 'robion'])
def test_time_of_every_request_is_accounted_for(policy: str, tmp_path: Path) -> None:
    """Preparation, waiting and execution are all of it; a policy may hold answers back."""
    ended = _ended(run_events(logged_round(tmp_path, policy)))
    assert len(ended) > 150
    for end, account in ended:
        assert end.outcome is Outcome.ANSWERED
        whole_ns = end.at_ns - end.request.arrival_ns
        parts_ns = account.prepared_ns + sum(account.waited_ns) + sum(account.ran_ns)
        held_back_ns = whole_ns - parts_ns
        assert held_back_ns >= 0
        assert held_back_ns == 0 or policy == 'robion'
        assert 0 <= sum(account.deferred_ns.values()) <= sum(account.waited_ns)


def test_repeated_decisions_are_told_once_and_deferrals_name_whom_they_favour(
    tmp_path: Path,
) -> None:
    events = list(run_events(logged_round(tmp_path, 'xinfer')))
    told = [event for event in events if isinstance(event, Decided)]
    newest: dict[int, tuple[object, ...]] = {}
    for event in told:
        facts = (event.decision.stage, event.decision.verdict, event.decision.against)
        assert newest.get(event.decision.key) != facts
        newest[event.decision.key] = facts
    favoured = [event for event in told if event.decision.verdict is Verdict.DEFERRED_CURRENT]
    assert favoured
    assert all(event.against is not None for event in favoured)
    assert any(account.held_back for _, account in _ended(events))


class Written:
    """A log that a test writes call by call, of the policy fifo."""

    def __init__(self) -> None:
        self._header = LogHeader(
            policy='fifo', settings={}, calibration=load_calibration('paper'), model='tiny',
            date='2026-01-31', names={1: 'left'},
        )  # fmt: skip
        self.core: NativeCore = self._header.core()
        self._state = self.core.snapshot()
        self.core.keep_journal(True)

    def submit(self, key: int, at_ns: int) -> None:
        self.core.announce(
            now_ns=at_ns, robot=1, arrival_ns=at_ns, budget_ns=100 * MS, period_ns=180 * MS
        )
        self.core.submit(
            now_ns=at_ns + MS, key=key, robot=1, arrival_ns=at_ns, budget_ns=100 * MS,
            reserved_ns=4 * MS, period_ns=180 * MS,
        )  # fmt: skip

    def log(self) -> DecisionLog:
        piece = self.core.take_journal()
        assert list(JournalReader().read(piece))
        part = LogPart(
            header=self._header, state=self._state, pieces=(piece,), names=self._header.names,
            torn_bytes=0, is_closed=True,
        )  # fmt: skip
        return DecisionLog(parts=(part,))


def test_request_without_an_answer_tells_how_it_came_to_that() -> None:
    written = Written()
    core = written.core
    written.submit(1, 0)
    written.submit(2, 10 * MS)
    core.cancel(12 * MS, 1)  # the robot has asked anew
    core.cancel(600 * MS, 2)  # it gave up after half a second
    written.submit(3, S)
    ((number, _, _),) = core.dispatch(S + 2 * MS)
    core.withdraw(S + 9 * MS, number)
    written.submit(4, 2 * S)
    core.cancel(2 * S + 5 * MS, 4)
    outcomes = [(end.request.key, end.outcome) for end, _ in _ended(run_events(written.log()))]
    assert outcomes == [
        (1, Outcome.SUPERSEDED),
        (2, Outcome.EXPIRED),
        (3, Outcome.FAILED),
        (4, Outcome.STOPPED),
    ]


def test_request_that_ends_although_it_was_cancelled_is_not_answered() -> None:
    """The server asks for the pace of those that it answers, and of no others."""
    written = Written()
    core = written.core
    for key, is_answered in ((1, True), (2, False)):
        written.submit(key, key * S)
        for stage in Stage:
            at_ns = key * S + (10 + 20 * stage) * MS
            ((number, _, _),) = core.dispatch(at_ns)
            finished = core.complete(at_ns + 15 * MS, number)
        if is_answered and finished:
            core.pace_ns(1)
    core.dispatch(3 * S)
    events = list(run_events(written.log()))
    ended = {event.request.key: event for event in events if isinstance(event, Ended)}
    assert ended[1].outcome is Outcome.ANSWERED
    assert ended[2].outcome is Outcome.STOPPED
    kinds = Counter(type(event) for event in events)
    assert (kinds[Submitted], kinds[UnitEnded]) == (2, 6)


def test_new_budget_moves_the_deadline_that_lateness_is_measured_by() -> None:
    written = Written()
    written.submit(1, 0)
    written.core.set_budget(1, 30 * MS)
    written.core.cancel(40 * MS, 1)
    ((end, _),) = _ended(run_events(written.log()))
    assert end.late_ns == 40 * MS - 26 * MS
    assert end.is_late


def test_what_was_live_where_calls_are_missing_is_not_followed() -> None:
    written = Written()
    written.submit(1, 0)
    written.core.dispatch(5 * MS)
    (first,) = written.log().parts
    written.core.complete(20 * MS, 1)
    state = written.core.snapshot()
    written.core.take_journal()
    written.submit(2, 30 * MS)
    written.core.cancel(40 * MS, 2)
    (second,) = written.log().parts
    second = replace(second, header=replace(second.header, part=3), state=state)
    events = list(run_events(DecisionLog(parts=(first, second))))
    assert [event.at_ns for event in events if isinstance(event, Missing)] == [30 * MS]
    assert [end.request.key for end, _ in _ended(events)] == [2]
