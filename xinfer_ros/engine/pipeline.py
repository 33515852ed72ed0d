# SPDX-License-Identifier: Apache-2.0
"""What the engine does about each event: records in, units to the lanes, results out."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.records import (
    Announce,
    Cancel,
    Done,
    Dropped,
    Record,
    SetBudget,
    Submit,
)
from xinfer_ros.engine.seen import Named, Watch
from xinfer_ros.engine.state_table import StateTable
from xinfer_ros.engine.telemetry import Telemetry
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.sched.scheduler import Finished, Scheduler

TICK_NS = 2_000_000
BEAT_NS = 250_000_000
MAX_FAILURES_IN_A_ROW = 5
MAX_OUT_OF_MEMORY_IN_A_ROW = 3

log = logging.getLogger(__name__)
Event = Record | UnitEnd
Issue = Callable[[Unit, tuple[int, ...]], None]


class DecisionLog(Protocol):
    """Writes down what the scheduler was told and what it decided."""

    def named(self, robot: int, name: str) -> None:
        """Take in who a robot is."""
        ...

    def drain(self) -> None:
        """Take over what has come together since the last call; returns at once."""
        ...


@dataclass(slots=True)
class _Spent:
    """Where a request's time went [ns]."""

    ready_ns: int
    queue_ns: int = 0
    stage_ns: dict[Stage, int] = field(default_factory=dict)


class Pipeline:
    """
    Drives the scheduler. Each unit advances on its own completion.

    It owns no thread and reads no clock: ``EngineLoop`` drives it in real time, a test in
    simulated time.

    :param scheduler: decides
    :param issue: hands a unit, with the states that its requests hold, to its lane; returns at
        once
    :param send: takes results for the front end
    :param num_states: states of the model that requests can hold
    :param stages: those that the model has; a unit of another one ends at once
    :param unit_timeout_ns: time after which a unit is given up, and the process with it [ns]
    :param decision_log: gets everything that the scheduler does, None if nobody wants to know
    """

    def __init__(
        self,
        scheduler: Scheduler,
        issue: Issue,
        send: Callable[[Record], None],
        *,
        num_states: int,
        stages: Collection[Stage] = tuple(Stage),
        unit_timeout_ns: int,
        decision_log: DecisionLog | None = None,
    ) -> None:
        self._scheduler, self._issue, self._send = scheduler, issue, send
        self._stages, self._decision_log = stages, decision_log
        self._telemetry = Telemetry(scheduler)
        self._states = StateTable(num_states)
        self._unit_timeout_ns = unit_timeout_ns
        self._spent: dict[int, _Spent] = {}
        self._refused: dict[int, Rejected] = {}  # by key, until they leave
        self._tick_ns: int | None = None
        self._beat_ns = 0
        # in a row, of each stage: a good unit of another stage says nothing of this one
        self._failures = [0 for _ in Stage]
        self._out_of_memory = [0 for _ in Stage]

    @property
    def wake_ns(self) -> int:
        """Return when the next step is due although nothing happens [ns]."""
        wake_ns, expiry_ns = self._beat_ns, self._scheduler.next_expiry_ns
        if self._tick_ns is not None:
            wake_ns = min(wake_ns, self._tick_ns)
        return wake_ns if expiry_ns is None else min(wake_ns, expiry_ns)

    def step(self, event: Event | None, now_ns: int) -> None:
        """
        Take in an event, None if only time has passed, and issue the units that start.

        :param now_ns: present time; never falls [ns]
        :raises EngineFailure: if the device is past help
        """
        is_due = self._tick_ns is not None and now_ns >= self._tick_ns
        if is_due:
            self._tick_ns = None
        if event is not None:
            self._handle(event, now_ns)
            is_due |= not isinstance(event, Announce | Named | Watch)
        for request in self._scheduler.expire(now_ns):
            self._drop(request, Reason.EXPIRED, 'no lane was free before the robot gave up')
            is_due = True
        if is_due:
            self._dispatch(now_ns)
        if now_ns >= self._beat_ns:
            self._beat(now_ns)

    def _beat(self, now_ns: int) -> None:
        self._beat_ns = now_ns + BEAT_NS
        if self._decision_log is not None:
            self._decision_log.drain()
        ready_ns = {key: spent.ready_ns for key, spent in self._spent.items()}
        timeline = self._telemetry.timeline(ready_ns, now_ns)
        if timeline is not None:
            self._send(timeline)
        beat = self._telemetry.beat(now_ns)
        self._send(beat)
        if beat.oldest_unit_ns > self._unit_timeout_ns:
            text = f'a unit has not ended within {self._unit_timeout_ns / 1e9:g} s'
            raise EngineFailure(ExitCode.HUNG, text)

    def _dispatch(self, now_ns: int) -> None:
        again = True
        while again:  # the end of a unit that takes no time may let others start
            again = False
            finished, dropped = self._scheduler.release(now_ns)
            self._leave(finished, dropped)
            for unit in self._scheduler.dispatch(now_ns):
                state_ids = tuple(
                    self._states.start(request.key, unit.stage) for request in unit.requests
                )
                if unit.stage not in self._stages:
                    self._completed(UnitEnd(unit=unit, started_ns=now_ns, ended_ns=now_ns), now_ns)
                    again = True
                    continue
                self._telemetry.issued(unit, now_ns)
                self._issue(unit, state_ids)
        if self._tick_ns is None and self._scheduler.waits:
            self._tick_ns = now_ns + TICK_NS

    def _handle(self, event: Event, now_ns: int) -> None:
        match event:
            case Announce():
                self._scheduler.announce(
                    event.robot, event.arrival_ns, event.budget_ns, event.period_ns, now_ns
                )
                if event.sight is not None:
                    self._scheduler.observe(event.robot, event.sight, now_ns)
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
            case Watch():
                self._telemetry.watch(event.on, now_ns)
            case Named():
                self._name(event)
            case _:
                raise TypeError(f'the front end never sends {type(event).__name__}')

    def _name(self, robot: Named) -> None:
        self._telemetry.named(robot.robot, robot.name)
        if self._decision_log is not None:
            self._decision_log.named(robot.robot, robot.name)

    def _unit_ended(self, end: UnitEnd, now_ns: int) -> None:
        self._telemetry.ended(end.unit, now_ns)
        if end.error is None:
            self._failures[end.unit.stage] = 0
            self._completed(end, now_ns)
            self._watch_memory(end)
            return
        reason, detail = _told(end)
        for request in self._scheduler.fail(end.unit, now_ns):
            self._drop(request, reason, detail)
        self._watch_failures(end)

    def _completed(self, end: UnitEnd, now_ns: int) -> None:
        """Let the members of a unit go on, but for those that were refused."""
        unit = end.unit
        for request in unit.requests:
            spent = self._spent[request.key]
            spent.queue_ns += end.started_ns - spent.ready_ns
            spent.stage_ns[unit.stage] = end.ended_ns - end.started_ns
            spent.ready_ns = end.ended_ns
            self._states.end(request.key, unit.stage)
            if request.slot in end.refused:
                self._refused[request.key] = end.refused[request.slot]
        finished, dropped = self._scheduler.complete(unit, now_ns, self._refused)
        self._leave(finished, dropped)

    def _leave(self, finished: Sequence[Finished], dropped: Sequence[Request]) -> None:
        """Send what has ended to the front end."""
        for request in dropped:
            refusal = self._refused.pop(request.key, None)
            if refusal is None:
                self._drop(request, Reason.SUPERSEDED, '')
            else:
                self._drop(request, refusal.reason, refusal.detail)
        for done in finished:
            self._done(done)

    def _done(self, finished: Finished) -> None:
        key = finished.request.key
        spent = self._spent.pop(key)
        self._states.release(key)
        done = Done(
            key=key,
            queue_ns=spent.queue_ns,
            vit_ns=spent.stage_ns[Stage.VIT],
            prefill_ns=spent.stage_ns[Stage.PREFILL],
            action_ns=spent.stage_ns[Stage.ACTION],
            ask_after_ns=finished.ask_after_ns,
        )
        self._send(done)

    def _drop(self, request: Request, reason: Reason, detail: str) -> None:
        del self._spent[request.key]
        self._states.release(request.key)
        self._send(Dropped(key=request.key, reason=reason, detail=detail))

    def _watch_memory(self, end: UnitEnd) -> None:
        """End the process when one unit after the other does not fit into the device."""
        stage = end.unit.stage
        if not any(why.reason is Reason.OUT_OF_MEMORY for why in end.refused.values()):
            self._out_of_memory[stage] = 0
            return
        log.error('the device has no memory for a unit of %s', stage.name)
        self._out_of_memory[stage] += 1
        if self._out_of_memory[stage] == MAX_OUT_OF_MEMORY_IN_A_ROW:
            text = f'{MAX_OUT_OF_MEMORY_IN_A_ROW} units of {stage.name} in a row did not fit'
            raise EngineFailure(ExitCode.OUT_OF_MEMORY, text)

    def _watch_failures(self, end: UnitEnd) -> None:
        """End the process when the device is lost, or when every unit fails."""
        if isinstance(end.error, Rejected):
            return
        if end.fault is Fault.DEVICE_LOST:
            raise EngineFailure(ExitCode.DEVICE_LOST, f'the device is lost: {end.error}')
        stage = end.unit.stage
        self._failures[stage] += 1
        if self._failures[stage] == MAX_FAILURES_IN_A_ROW:
            text = f'{MAX_FAILURES_IN_A_ROW} units of {stage.name} in a row have failed'
            raise EngineFailure(ExitCode.MODEL_FAILS, text)


def _told(end: UnitEnd) -> tuple[Reason, str]:
    """Log a failed unit and return what its robots are told; no trace, no path."""
    if isinstance(end.error, Rejected):
        return end.error.reason, end.error.detail
    name = end.unit.stage.name
    log.error('a unit of %s failed', name, exc_info=end.error)
    if end.fault is Fault.DEVICE_LOST:
        return Reason.DEVICE_FAILED, 'the device has failed; a new engine will start'
    return Reason.MODEL_FAILED, f'the {name} stage failed; see the server log'
