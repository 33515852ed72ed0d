# SPDX-License-Identifier: Apache-2.0
"""Drives the scheduler: records in, units to the lanes, results out; by steps, in real time."""

import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass, field

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.lane import Lane, StageRunner, UnitEnd
from xinfer_ros.engine.records import (
    Announce,
    Beat,
    Cancel,
    Done,
    Dropped,
    Record,
    SetBudget,
    Submit,
)
from xinfer_ros.errors import ModelError, Reason, Rejected
from xinfer_ros.sched.scheduler import Finished, Scheduler

TICK_NS = 2_000_000
BEAT_NS = 250_000_000
MAX_FAILURES_IN_A_ROW = 5

log = logging.getLogger(__name__)
Event = Record | UnitEnd


@dataclass(slots=True)
class _Spent:
    """Where a request's time went [ns]."""

    ready_ns: int
    queue_ns: int = 0
    stage_ns: dict[Stage, int] = field(default_factory=dict)


class Pipeline:
    """
    What the engine does about each event. Each unit advances on its own completion.

    It owns no thread and reads no clock: ``EngineLoop`` drives it in real time, a test in
    simulated time.

    :param scheduler: decides
    :param issue: hands a unit to its lane; returns at once
    :param send: takes results for the front end
    """

    def __init__(
        self,
        scheduler: Scheduler,
        issue: Callable[[Unit], None],
        send: Callable[[Record], None],
    ) -> None:
        self._scheduler, self._issue, self._send = scheduler, issue, send
        self._spent: dict[int, _Spent] = {}
        self._issued_ns: dict[int, int] = {}
        self._tick_ns: int | None = None
        self._beat_ns = 0
        self._failures = 0

    @property
    def wake_ns(self) -> int:
        """Return when the next step is due although nothing happens [ns]."""
        due = (self._beat_ns, self._tick_ns, self._scheduler.next_expiry_ns)
        return min(at_ns for at_ns in due if at_ns is not None)

    def step(self, event: Event | None, now_ns: int) -> None:
        """
        Take in an event, None if only time has passed, and issue the units that start.

        :param now_ns: present time; never falls [ns]
        :raises ModelError: if several units in a row have failed: the device is past help
        """
        is_due = self._tick_ns is not None and now_ns >= self._tick_ns
        if is_due:
            self._tick_ns = None
        if event is not None:
            self._handle(event, now_ns)
            is_due |= not isinstance(event, Announce)
        for request in self._scheduler.expire(now_ns):
            self._drop(request, Reason.EXPIRED, 'no lane was free before the robot gave up')
            is_due = True
        if is_due:
            self._dispatch(now_ns)
        if now_ns >= self._beat_ns:
            self._beat_ns = now_ns + BEAT_NS
            oldest_ns = min(self._issued_ns.values(), default=now_ns)
            slowdown = self._scheduler.slowdown
            self._send(Beat(oldest_unit_ns=now_ns - oldest_ns, slowdown=slowdown))

    def _dispatch(self, now_ns: int) -> None:
        for unit in self._scheduler.dispatch(now_ns):
            self._issued_ns[unit.number] = now_ns
            self._issue(unit)
        if self._tick_ns is None and self._scheduler.waits:
            self._tick_ns = now_ns + TICK_NS

    def _handle(self, event: Event, now_ns: int) -> None:
        match event:
            case Announce():
                self._scheduler.announce(
                    event.robot, event.arrival_ns, event.budget_ns, event.period_ns, now_ns
                )
            case Submit():
                self._spent[event.request.key] = _Spent(ready_ns=now_ns)
                self._scheduler.submit(event.request, now_ns)
            case Cancel():
                cancelled = self._scheduler.cancel(event.key, now_ns)
                if cancelled is not None:
                    self._drop(cancelled, Reason.SUPERSEDED, '')
            case SetBudget():
                self._scheduler.set_budget(event.key, event.budget_ns)
            case UnitEnd():
                self._unit_ended(event, now_ns)
            case _:
                raise TypeError(f'the front end never sends {type(event).__name__}')

    def _unit_ended(self, end: UnitEnd, now_ns: int) -> None:
        del self._issued_ns[end.unit.number]
        if end.error is not None:
            reason, detail = self._failure(end)
            for request in self._scheduler.fail(end.unit, now_ns):
                self._drop(request, reason, detail)
            return
        self._failures = 0
        for request in end.unit.requests:
            spent = self._spent[request.key]
            spent.queue_ns += end.started_ns - spent.ready_ns
            spent.stage_ns[end.unit.stage] = end.ended_ns - end.started_ns
            spent.ready_ns = end.ended_ns
        finished, dropped = self._scheduler.complete(end.unit, now_ns)
        for request in dropped:
            self._drop(request, Reason.SUPERSEDED, '')
        for done in finished:
            self._done(done)

    def _done(self, finished: Finished) -> None:
        spent = self._spent.pop(finished.request.key)
        done = Done(
            key=finished.request.key,
            queue_ns=spent.queue_ns,
            vit_ns=spent.stage_ns[Stage.VIT],
            prefill_ns=spent.stage_ns[Stage.PREFILL],
            action_ns=spent.stage_ns[Stage.ACTION],
            ask_after_ns=finished.ask_after_ns,
        )
        self._send(done)

    def _drop(self, request: Request, reason: Reason, detail: str) -> None:
        del self._spent[request.key]
        self._send(Dropped(key=request.key, reason=reason, detail=detail))

    def _failure(self, end: UnitEnd) -> tuple[Reason, str]:
        """Log a failed unit and return what its robots are told; no trace, no path."""
        if isinstance(end.error, Rejected):
            return end.error.reason, end.error.detail
        name = end.unit.stage.name
        log.error('a unit of %s failed', name, exc_info=end.error)
        self._failures += 1
        if self._failures == MAX_FAILURES_IN_A_ROW:
            raise ModelError(f'{self._failures} units in a row have failed')
        return Reason.MODEL_FAILED, f'the {name} stage failed; see the server log'


class EngineLoop:
    """
    Drives a pipeline in real time, with a lane for each stage.

    :param scheduler: decides; called in the thread of ``run`` only
    :param model: computes the stages
    :param clock: monotonic time, the same as the front end's
    :param send: takes results for the front end; called in the thread of ``run``
    """

    def __init__(
        self,
        scheduler: Scheduler,
        model: StageRunner,
        clock: Clock,
        send: Callable[[Record], None],
    ) -> None:
        self._clock = clock
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._lanes = {stage: Lane(stage, model, clock, self._events.put) for stage in Stage}
        self._pipeline = Pipeline(scheduler, self._issue, send)

    def post(self, record: Record | None) -> None:
        """Hand in a record of the front end, None to end ``run``; from any thread."""
        self._events.put(record)

    def run(self) -> None:
        """
        Serve until None is posted; ends the lanes before it returns.

        :raises ModelError: if several units in a row have failed: the device is past help
        """
        while True:
            wait_ns = max(self._pipeline.wake_ns - self._clock.now_ns(), 0)
            try:
                event = self._events.get(timeout=wait_ns / 1e9)
                if event is None:
                    break
            except queue.Empty:
                event = None  # only the clock has moved
            self._pipeline.step(event, self._clock.now_ns())
        for lane in self._lanes.values():
            lane.close()

    def _issue(self, unit: Unit) -> None:
        self._lanes[unit.stage].issue(unit)
