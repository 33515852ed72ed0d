# SPDX-License-Identifier: Apache-2.0
"""Drives the scheduler in real time: records in, units to the lanes, results out."""

import queue
from collections.abc import Callable
from dataclasses import dataclass, field

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.lane import Lane, StageRunner, UnitEnd
from xinfer_ros.engine.records import Cancel, Done, Dropped, Record, SetBudget, Submit
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.sched.scheduler import Scheduler

EXPIRY_CHECK_S = 0.05


@dataclass(slots=True)
class _Spent:
    """Where a request's time went [ns]."""

    ready_ns: int
    queue_ns: int = 0
    stage_ns: dict[Stage, int] = field(default_factory=dict)


class Pipeline:
    """
    The engine's loop. Each unit advances on its own completion; there is no common round.

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
        self._scheduler, self._clock, self._send = scheduler, clock, send
        self._events: queue.SimpleQueue[Record | UnitEnd | None] = queue.SimpleQueue()
        self._spent: dict[int, _Spent] = {}
        self._lanes = {stage: Lane(stage, model, clock, self._events.put) for stage in Stage}

    def post(self, record: Record | None) -> None:
        """Hand in a record of the front end, None to end ``run``; from any thread."""
        self._events.put(record)

    def run(self) -> None:
        """Serve until None is posted; ends the lanes before it returns."""
        while True:
            try:
                event = self._events.get(timeout=EXPIRY_CHECK_S if self._spent else None)
            except queue.Empty:
                event = Cancel(key=0)  # names nobody: only the clock has moved
            if event is None:
                break
            now_ns = self._clock.now_ns()
            self._handle(event, now_ns)
            for request in self._scheduler.expire(now_ns):
                self._drop(request, Reason.EXPIRED, 'no lane was free before the robot gave up')
            for unit in self._scheduler.dispatch(now_ns):
                self._lanes[unit.stage].issue(unit)
        for lane in self._lanes.values():
            lane.close()

    def _handle(self, event: Record | UnitEnd, now_ns: int) -> None:
        match event:
            case Submit():
                self._spent[event.request.key] = _Spent(ready_ns=now_ns)
                self._scheduler.submit(event.request, now_ns)
            case Cancel():
                cancelled = self._scheduler.cancel(event.key, now_ns)
                if cancelled is not None:
                    self._drop(cancelled, Reason.SUPERSEDED, '')
            case SetBudget():
                self._scheduler.set_budget(event.key, event.budget_ns, now_ns)
            case UnitEnd():
                self._unit_ended(event, now_ns)
            case _:
                raise TypeError(f'the front end never sends {type(event).__name__}')

    def _unit_ended(self, end: UnitEnd, now_ns: int) -> None:
        if end.error is not None:
            reason, detail = _failure(end)
            for request in self._scheduler.fail(end.unit, now_ns):
                self._drop(request, reason, detail)
            return
        for request in end.unit.requests:
            spent = self._spent[request.key]
            spent.queue_ns += end.started_ns - spent.ready_ns
            spent.stage_ns[end.unit.stage] = end.ended_ns - end.started_ns
            spent.ready_ns = end.ended_ns
        finished, dropped = self._scheduler.complete(end.unit, now_ns)
        for request in dropped:
            self._drop(request, Reason.SUPERSEDED, '')
        for request in finished:
            spent = self._spent.pop(request.key)
            done = Done(
                key=request.key,
                queue_ns=spent.queue_ns,
                vit_ns=spent.stage_ns[Stage.VIT],
                prefill_ns=spent.stage_ns[Stage.PREFILL],
                action_ns=spent.stage_ns[Stage.ACTION],
            )
            self._send(done)

    def _drop(self, request: Request, reason: Reason, detail: str) -> None:
        del self._spent[request.key]
        self._send(Dropped(key=request.key, reason=reason, detail=detail))


def _failure(end: UnitEnd) -> tuple[Reason, str]:
    """Return what a robot is told of a failed unit; no trace, no path."""
    if isinstance(end.error, Rejected):
        return end.error.reason, end.error.detail
    return Reason.MODEL_FAILED, f'the {end.unit.stage.name} stage failed; see the server log'
