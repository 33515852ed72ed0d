# SPDX-License-Identifier: Apache-2.0
"""A whole fleet in simulated time: real robots, front end and pipeline on a table-timed device."""

import heapq
import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.request import Unit
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.engine_life import EngineEvents, EngineLife
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.health import HangWatch
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.pipeline import Pipeline
from xinfer_ros.engine.records import Beat, Done, Dropped, Record
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.session import Grant
from xinfer_ros.sched.registry import make_scheduler

from .scripted_engine import CONTRACT, SPACING_NS, observation

MS, S = 1_000_000, 1_000_000_000
NETWORK_NS = 2 * MS
FRONT_END_NS = 7 * MS
LEASE_NS = 5 * S


class Timeline:
    """What happens when, on a simulated clock; things at one time happen in order of entry."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(S)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def after(self, delay_ns: int, what: Callable[[], None]) -> None:
        """Let something happen in a while."""
        at_ns = self.clock.now_ns() + max(delay_ns, 0)
        heapq.heappush(self._events, (at_ns, next(self._order), what))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.clock.now_ns() + round(seconds * S)
        while self._events and self._events[0][0] <= end_ns:
            at_ns, _, what = heapq.heappop(self._events)
            self.clock.advance(at_ns - self.clock.now_ns())
            what()
        self.clock.advance(end_ns - self.clock.now_ns())


class TableDevice:
    """
    Executes units on the device of the simulator.

    :param ended: told of every end
    """

    def __init__(
        self, calibration: Calibration, time: Timeline, ended: Callable[[UnitEnd], None]
    ) -> None:
        self._calibration, self._time, self._ended = calibration, time, ended
        self._random = np.random.default_rng(1)
        self._device = SimulatedDevice(calibration.rates)
        self._running: dict[int, tuple[Unit, int]] = {}  # and when it was issued
        self._plan = 0
        self.slowdown = 1.0
        self.stalled = False
        self.started = [0 for _ in Stage]
        self.seen: set[tuple[int, int, int]] = set()  # units of each stage that ran at once
        self._put_off: list[tuple[Unit, tuple[int, ...]]] = []

    def issue(self, unit: Unit, state_ids: tuple[int, ...]) -> None:
        """Start a unit; a stalled device takes it in when the stall is over."""
        if self.stalled:
            self._put_off.append((unit, state_ids))
            return
        self.started[unit.stage] += 1
        now_ns, calibration = self._time.clock.now_ns(), self._calibration
        work_ms = (
            calibration.work_ms[unit.stage]
            * calibration.batch_work[unit.stage][len(unit.requests) - 1]
            * self.slowdown
            * float(self._random.lognormal(0.0, 0.1))
        )
        executing = Executing(
            number=unit.number,
            stage=unit.stage,
            begin_ns=now_ns + round(calibration.overhead_ms[unit.stage] * MS),
            left_ms=work_ms,
        )
        self._running[unit.number] = unit, now_ns
        self._device.start(now_ns, [executing])
        running = [other.stage for other, _ in self._running.values()]
        self.seen.add((running.count(0), running.count(1), running.count(2)))
        self._await_end()

    def go_on(self) -> None:
        """End the stall."""
        self.stalled = False
        waiting, self._put_off = self._put_off, []
        for unit, state_ids in waiting:
            self.issue(unit, state_ids)

    def _await_end(self) -> None:
        self._plan += 1
        plan, at_ns = self._plan, self._device.next_end_ns
        if at_ns is not None:
            self._time.after(at_ns - self._time.clock.now_ns(), lambda: self._end(plan))

    def _end(self, plan: int) -> None:
        if plan != self._plan:  # another unit has started or ended since
            return
        unit, started_ns = self._running.pop(self._device.end_next())
        self._await_end()
        ended_ns = self._time.clock.now_ns()
        end = UnitEnd(unit=unit, started_ns=started_ns, ended_ns=ended_ns, error=None)
        self._ended(end)


class SimulatedEngine:
    """The engine process without a process: the real pipeline before a table-timed device."""

    pid = 1

    def __init__(
        self,
        calibration: Calibration,
        policy: str,
        num_slots: int,
        time: Timeline,
        switches: Mapping[str, bool],
    ) -> None:
        self._time = time
        self.device = TableDevice(calibration, time, self._step)
        scheduler = make_scheduler(policy, calibration, **switches)
        self._pipeline = Pipeline(
            scheduler,
            self.device.issue,
            self._send,
            num_states=num_slots,
            unit_timeout_ns=10 * S,
        )
        self._hang_watch = HangWatch(round(1.5 * S))
        memory = memoryview(bytearray(slot_memory_bytes(CONTRACT, num_slots)))
        self.life = EngineLife(1, self, CONTRACT, slot_arrays(CONTRACT, num_slots, memory))

    def start(self, events: EngineEvents) -> None:
        """Be ready at once."""
        self._events = events
        events.engine_ready(self.life)
        self._wake()

    def close(self) -> None:
        """Do nothing: there is no process."""

    def send(self, record: Record) -> None:
        """Take in a record of the front end."""
        self._step(record)

    def _step(self, event: Record | UnitEnd | None) -> None:
        self._pipeline.step(event, self._time.clock.now_ns())

    def _wake(self) -> None:
        self._step(None)
        self._time.after(2 * MS, self._wake)

    def _send(self, record: Record) -> None:
        if isinstance(record, Beat):
            self.life.slowdown = record.slowdown
            if self._hang_watch.has_changed(record.oldest_unit_ns):
                self._events.engine_hangs(self.life, self._hang_watch.hangs)
        elif isinstance(record, Done | Dropped):
            self._events.engine_record(self.life, record)


class SlowExecutor(Executor):
    """Decodes pictures in the time that the CPU takes."""

    def __init__(self, time: Timeline) -> None:
        self._time = time

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> 'Future[Any]':
        """Run it in a while."""
        self._time.after(FRONT_END_NS, lambda: fn(*args, **kwargs))
        return Future()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One request of a robot and what became of it [ns]."""

    sent_ns: int
    answered_ns: int
    budget_ns: int
    reason: Reason
    detail: str

    @property
    def latency_ns(self) -> int:
        """Return the time from the request to its answer at the robot [ns]."""
        return self.answered_ns - self.sent_ns


@dataclass(slots=True)
class Member:
    """A robot of the fleet: its executor, its place at the server, and what it got."""

    executor: ChunkExecutor
    robot: Robot
    period_ns: int
    here: bool = True
    pauses: bool = False
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def since(self, from_ns: int) -> list[Outcome]:
        """Return what became of the requests that were sent from some time on."""
        return [outcome for outcome in self.outcomes if outcome.sent_ns >= from_ns]


class SimulatedFleet:
    """
    Robots, a server and a device in simulated time.

    :param calibration: of the device
    :param share: of what the device can do at most that robots are admitted for; None: all are
    :param overlap_preparation: whether pictures are prepared while the device computes
    :param switches: of the scheduler
    """

    def __init__(
        self,
        calibration: Calibration,
        *,
        policy: str = 'foresight',
        share: float | None = 0.95,
        overlap_preparation: bool = True,
        **switches: bool,
    ) -> None:
        self.time = Timeline()
        self.engine = SimulatedEngine(calibration, policy, 64, self.time, switches)
        capacity = None if share is None else share * calibration.saturated_per_ms * 1e3
        settings = FrontEndSettings(
            max_robots=60,
            lease_ns=LEASE_NS,
            reserved_ns=round(calibration.reserved_ms * MS),
            first_epoch=1,
            capacity_per_s=capacity,
            overlap_preparation=overlap_preparation,
        )
        self._members: dict[Robot, Member] = {}
        self._names = itertools.count()
        decoders = SlowExecutor(self.time)
        self.front_end = FrontEnd(
            settings, self.time.clock, self.engine, decoders, self._answer, lambda status: None
        )
        self.in_server: set[tuple[Robot, int]] = set()
        self.most_in_server = 0
        self._keep_house()

    def _keep_house(self) -> None:
        self.front_end.forget_silent()
        self.time.after(S, self._keep_house)

    def join(
        self, *, budget_ms: int, period_ms: int = 180, after_ms: float = 0.0, backoff_ms: int = 100
    ) -> Member:
        """Let a robot register and ask from some time on."""
        registration = Registration(
            robot_id=f'r{next(self._names)}',
            namespace=f'/r{len(self._members)}',
            joint_names=CONTRACT.joint_names,
            cameras=('top',),
            keyframe_spacing_ns=SPACING_NS,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=1,
        )
        robot = self.front_end.register(registration)[0]
        executor = ChunkExecutor(
            ExecutorSettings(
                robot_id=registration.robot_id,
                joint_names=CONTRACT.joint_names,
                keyframe_spacing_ns=SPACING_NS,
                minimum_period_ns=period_ms * MS,
                backoff_ns=backoff_ms * MS,
                commitment_steps=0,
                budget_ns=budget_ms * MS,
            )
        )
        grant = Grant(session=robot.session, epoch=1, lease_ns=LEASE_NS)
        executor.granted(grant, self.time.clock.now_ns())
        member = self._members[robot] = Member(executor, robot, period_ms * MS)
        self.time.after(round(after_ms * MS), lambda: self._poll(member))
        return member

    def leave(self, member: Member) -> None:
        """Let a robot vanish; the server learns of it by its silence."""
        member.here = False

    def _poll(self, member: Member) -> None:
        if not member.here:
            return
        now_ns = self.time.clock.now_ns()
        if member.executor.request_is_due(now_ns) and not member.pauses:
            self.ask(member)
        self.time.after(5 * MS, lambda: self._poll(member))

    def ask(self, member: Member) -> None:
        """Let a robot ask, whether it waits for an answer or not."""
        now_ns = self.time.clock.now_ns()
        draft = member.executor.begin_request(now_ns)
        assert draft is not None
        asked = observation(
            member.robot,
            draft.request_id,
            budget_ns=draft.budget_ns,
            minimum_period_ns=draft.minimum_period_ns,
        )
        member.sent[draft.request_id] = now_ns, draft.budget_ns
        self.time.after(NETWORK_NS, lambda: self._arrive(member, asked))

    def _arrive(self, member: Member, asked: Any) -> None:
        self.in_server.add((member.robot, asked.request_id))
        self.front_end.submit(member.robot, asked, self.time.clock.now_ns())
        self.most_in_server = max(self.most_in_server, len(self.in_server))

    def _answer(self, robot: Robot, answer: Answer) -> None:
        self.in_server.discard((robot, answer.request_id))
        self.time.after(NETWORK_NS, lambda: self._receive(self._members[robot], answer))

    def _receive(self, member: Member, answer: Answer) -> None:
        now_ns = self.time.clock.now_ns()
        sent_ns, budget_ns = member.sent.pop(answer.request_id)
        member.executor.accept(answer, now_ns)
        member.outcomes.append(
            Outcome(
                sent_ns=sent_ns,
                answered_ns=now_ns,
                budget_ns=budget_ns,
                reason=answer.reason,
                detail=answer.detail,
            )
        )
