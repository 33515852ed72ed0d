# SPDX-License-Identifier: Apache-2.0
"""Runs a decision log again and tells what happened, event by event."""

from collections.abc import Iterable, Iterator

from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.decision_replay import Step, replay_parts
from xinfer_ros.fleet.run_events import (
    BudgetChanged,
    Counted,
    Decided,
    Ended,
    LoggedRequest,
    LoggedUnit,
    Missing,
    Outcome,
    RunEvent,
    Submitted,
    UnitEnded,
    UnitStarted,
)
from xinfer_ros.sched.decision import Decision, Verdict
from xinfer_ros.sched.journal import Call, CallKind, Started
from xinfer_ros.sched.log_files import DecisionLog
from xinfer_ros.sched.native import NativeCore


def run_events(log: DecisionLog) -> Iterator[RunEvent]:
    """
    Yield what happened by a log, in its order; the log is run again while it is read.

    :raises ConfigError: if it cannot be read, or the scheduler decides otherwise now
    """
    story: _Story | None = None
    for replay in replay_parts(log, keep_decisions=True):
        is_missing = story is not None and replay.continues is None
        if story is None or is_missing:
            story = _Story(replay.core)
        story.core = replay.core
        for step in replay.steps():
            if is_missing:
                yield Missing(at_ns=step.call.now_ns)
                is_missing = False
            if not step.agrees:
                raise ConfigError(
                    'this scheduler decides otherwise than the one of the log, so its reasons are '
                    'not known; xinfer replay-decisions tells where, and the version of '
                    'xinfer_ros that has written the log agrees with it'
                )
            yield from story.take(step)


class _Story:
    """
    What is live, followed call by call.

    :param core: the scheduler as it is where the story begins
    """

    def __init__(self, core: NativeCore) -> None:
        self.core = core
        self._live: dict[int, LoggedRequest] = {}
        self._units: dict[int, LoggedUnit] = {}
        self._told: dict[int, tuple[Stage, Verdict, int | None]] = {}
        # and when; answered, if the pace is asked for
        self._finished: list[tuple[LoggedRequest, int]] = []
        self._newest: dict[int, int] = {}  # arrival of the newest request of each robot
        self._counts: tuple[object, ...] = ()
        for key, robot, arrival_ns, budget_ns, deadline_ns, stage, unit in core.live_requests():
            self._live[key] = LoggedRequest(
                key=key, robot=robot, arrival_ns=arrival_ns, budget_ns=budget_ns,
                deadline_ns=deadline_ns, ready_ns=arrival_ns, stage=Stage(stage),
                unit=unit if unit >= 0 else None,
            )  # fmt: skip

    def take(self, step: Step) -> Iterator[RunEvent]:
        """Yield what a call tells."""
        call = step.call
        if call.kind is not CallKind.PACE:
            yield from self._unpaced()
        match call.kind:
            case CallKind.ANNOUNCE:
                self._newest[call.named()['robot']] = call.named()['arrival_ns']
            case CallKind.SUBMIT:
                yield self._submit(call)
            case CallKind.DISPATCH:
                yield from self._dispatch(call, step.decisions)
            case CallKind.COMPLETE:
                yield from self._complete(call)
            case CallKind.RELEASE:
                self._finish(call)
            case CallKind.PACE:
                yield self._paced(call)
            case CallKind.CANCEL if call.answer[0]:
                yield self._cancel(call)
            case CallKind.WITHDRAW:
                yield from self._withdraw(call)
            case CallKind.SET_BUDGET:
                yield from self._set_budget(call)

    def _finish(self, call: Call) -> None:
        self._finished += [(self._gone(key), call.now_ns) for key in call.answer]

    def _unpaced(self) -> Iterator[Ended]:
        """Yield those whose last stage has ended although nobody waited for them."""
        for request, at_ns in self._finished:
            yield Ended(at_ns=at_ns, request=request, outcome=self._why_stopped(request, at_ns))
        self._finished.clear()

    def _gone(self, key: int) -> LoggedRequest:
        self._told.pop(key, None)
        return self._live.pop(key)

    def _submit(self, call: Call) -> Submitted:
        told = call.named()
        request = LoggedRequest(
            key=told['key'],
            robot=told['robot'],
            arrival_ns=told['arrival_ns'],
            budget_ns=told['budget_ns'],
            deadline_ns=told['arrival_ns'] + told['budget_ns'] - told['reserved_ns'],
            ready_ns=call.now_ns,
        )
        self._live[request.key] = request
        slack_ms = self.core.slack_ms(request.key)
        return Submitted(at_ns=call.now_ns, request=request, slack_ms=slack_ms)

    def _dispatch(self, call: Call, decisions: Iterable[Decision]) -> Iterator[RunEvent]:
        shielded = set[int]()
        for decision in decisions:
            if decision.verdict is Verdict.ISSUED_PROTECTED:
                shielded.add(decision.key)
            facts = (decision.stage, decision.verdict, decision.against)
            if self._told.get(decision.key) != facts:
                self._told[decision.key] = facts
                yield self._decided(decision, call.now_ns)
        ends_ns = self.core.foreseen_ends_ns() if call.units else {}
        for unit in call.units:
            yield self._start(unit, call.now_ns, ends_ns[unit.number], shielded)
        counts = self._count()
        if counts != self._counts:
            self._counts = counts
            waiting, running, protected = counts
            yield Counted(at_ns=call.now_ns, waiting=waiting, running=running, protected=protected)

    def _decided(self, decision: Decision, now_ns: int) -> Decided:
        return Decided(
            at_ns=now_ns,
            request=self._live[decision.key],
            decision=decision,
            slack_ms=self.core.slack_ms(decision.key),
            against=self._live.get(decision.against) if decision.against is not None else None,
        )

    def _start(
        self, unit: Started, now_ns: int, foreseen_end_ns: int, shielded: set[int]
    ) -> UnitStarted:
        requests = tuple(self._live[key] for key in unit.keys)
        for request in requests:
            request.unit = unit.number
        started = LoggedUnit(
            number=unit.number,
            stage=unit.stage,
            requests=requests,
            started_ns=now_ns,
            foreseen_end_ns=foreseen_end_ns,
            protected=not shielded.isdisjoint(unit.keys),
        )
        self._units[unit.number] = started
        return UnitStarted(at_ns=now_ns, unit=started)

    def _count(self) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
        waiting, running = [0, 0, 0], [0, 0, 0]
        for request in self._live.values():
            waiting[request.stage] += request.unit is None
        for unit in self._units.values():
            running[unit.stage] += 1
        return _three(waiting), _three(running), self.core.num_protected()

    def _complete(self, call: Call) -> Iterator[RunEvent]:
        yield from self._unit_end(call, good=True)
        for request in list(self._live.values()):
            following = request.stage.following
            if request.unit == call.told[0] and following is not None:  # else it is held back
                request.unit, request.stage, request.ready_ns = None, following, call.now_ns
        self._finish(call)

    def _unit_end(self, call: Call, *, good: bool) -> Iterator[UnitEnded]:
        unit = self._units.pop(call.told[0], None)
        if unit is not None:  # else it had started before the log begins
            yield UnitEnded(at_ns=call.now_ns, unit=unit, good=good)

    def _paced(self, call: Call) -> Ended:
        (robot,), (pace_ns,) = call.told, call.answer
        found = next(one for one in self._finished if one[0].robot == robot)
        self._finished.remove(found)
        request, at_ns = found
        return Ended(at_ns=at_ns, request=request, outcome=Outcome.ANSWERED, pace_ns=pace_ns)

    def _cancel(self, call: Call) -> Ended:
        request = self._gone(call.told[0])
        outcome = self._why_stopped(request, call.now_ns)
        return Ended(at_ns=call.now_ns, request=request, outcome=outcome)

    def _why_stopped(self, request: LoggedRequest, now_ns: int) -> Outcome:
        if self._newest.get(request.robot, request.arrival_ns) > request.arrival_ns:
            return Outcome.SUPERSEDED
        if now_ns >= request.arrival_ns + retry_after_ns(request.budget_ns):
            return Outcome.EXPIRED
        return Outcome.STOPPED

    def _withdraw(self, call: Call) -> Iterator[RunEvent]:
        yield from self._unit_end(call, good=False)
        for request in [one for one in self._live.values() if one.unit == call.told[0]]:
            yield Ended(at_ns=call.now_ns, request=self._gone(request.key), outcome=Outcome.FAILED)

    def _set_budget(self, call: Call) -> Iterator[BudgetChanged]:
        key, budget_ns = call.told
        request = self._live.get(key)
        if request is not None:
            request.deadline_ns += budget_ns - request.budget_ns
            request.budget_ns = budget_ns
            yield BudgetChanged(at_ns=call.now_ns, request=request)


def _three(counts: list[int]) -> tuple[int, int, int]:
    vit, prefill, action = counts
    return vit, prefill, action
