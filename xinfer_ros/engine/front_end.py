# SPDX-License-Identifier: Apache-2.0
"""The front end: registers robots, turns observations into requests, and sees to every answer."""

import threading
from collections.abc import Callable

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.core.request import check_budget
from xinfer_ros.engine.answering import Answering
from xinfer_ros.engine.decoders import Decoders
from xinfer_ros.engine.engine_life import Engine, EngineLife
from xinfer_ros.engine.observer import NoObserver, ServerObserver
from xinfer_ros.engine.pending import Pending, PendingRequests
from xinfer_ros.engine.preparation import preparation
from xinfer_ros.engine.records import Beat, Cancel, Done, Dropped, SetBudget, Submit
from xinfer_ros.engine.robots import Registration, Robot
from xinfer_ros.engine.seen import Named, Timeline
from xinfer_ros.engine.serving import Serving
from xinfer_ros.engine.slot_writer import why_not_filled
from xinfer_ros.engine.status import FrontEndSettings, ServerStatus
from xinfer_ros.engine.told_register import ToldRegister
from xinfer_ros.engine.validation import check_observation
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.sched.admission import CapacityAdmission


class FrontEnd:
    """
    Holds no torch and no ROS. Every observation gets exactly one answer, through ``answer``.

    Methods may be called from any thread and do not wait for the engine; ``answer`` and
    ``announce`` are called from several threads, one at a time for ``announce``.

    :param settings: bounds and times
    :param clock: the server's monotonic clock
    :param engine: starts engine processes
    :param decoders: runs the decoding of pictures; shut down by ``close``
    :param answer: publishes an answer to a robot
    :param announce: publishes the server's status whenever it changes
    :param observer: is told what happens
    """

    def __init__(
        self,
        settings: FrontEndSettings,
        clock: Clock,
        engine: Engine,
        decoders: Decoders,
        answer: Callable[[Robot, Answer], None],
        announce: Callable[[ServerStatus], None],
        observer: ServerObserver | None = None,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._announce, self._observer = announce, observer or NoObserver()
        self._lock = threading.Lock()
        self._order = threading.Lock()  # a request's Submit leaves before its Cancel or SetBudget
        self._robots = ToldRegister(settings.max_robots, settings.lease_ns, self._observer)
        self._capacity = CapacityAdmission(settings.capacity_per_s)
        self._pending = PendingRequests()
        self._serving = Serving(settings.first_epoch)
        self._announcing = threading.Lock()
        self._answering = Answering(self._pending, clock, answer, self._observer)
        self.tally = self._answering.tally
        self._decoders = decoders
        kind = preparation(overlap=settings.overlap_preparation)
        self._preparation = kind(decoders, self._prepare, self._hand_over)
        self._engine = engine
        engine.start(self)

    # Robots

    def register(self, registration: Registration) -> tuple[Robot, Robot | None, ModelContract]:
        """
        Register a robot or renew its lease.

        :returns: the robot, the silent one whose place it took, and the contract in force
        :raises Rejected: why not
        """
        with self._lock:
            life = self._serving.warm_engine()
            contract, before = life.contract, len(self._robots)
            robot, replaced = self._robots.register(registration, contract, self._clock.now_ns())
            life.send(Named(robot=robot.number, name=registration.robot_id))
            joined = len(self._robots) != before
            if replaced is not None:
                self._capacity.forget(replaced.number)
        if replaced is not None:
            self._withdraw(replaced, Reason.UNKNOWN_SESSION, 'another robot has taken the id')
        if joined:
            self._say()
        return robot, replaced, contract

    def forget_silent(self) -> list[Robot]:
        """Remove and return robots whose lease is over; call it about once a second."""
        with self._lock:
            gone = self._robots.silent(self._clock.now_ns())
            for robot in gone:
                self._capacity.forget(robot.number)
        for robot in gone:
            self._withdraw(robot, Reason.UNKNOWN_SESSION, 'the lease is over')
        if gone:
            self._say()
        return gone

    def robots(self) -> list[Robot]:
        """Return every registered robot."""
        with self._lock:
            return self._robots.all()

    def contract(self) -> ModelContract:
        """Return the contract in force; raises Rejected NOT_READY or SHUTDOWN if none is."""
        with self._lock:
            return self._serving.warm_engine().contract

    def status(self) -> ServerStatus:
        """Return what the server announces of itself."""
        with self._lock:
            return self._serving.status(len(self._robots), self._settings.max_robots)

    def set_active(self, active: bool) -> None:
        """Serve, or answer whoever registers or asks NOT_READY."""
        with self._lock:
            self._serving.is_active = active
        self._say()

    def watch(self, on: bool) -> None:
        """Let the engine tell what its lanes do, or not any more."""
        with self._lock:
            self._serving.watch(on)

    def _say(self) -> None:
        with self._announcing:  # so that the newest status is the one that stays
            self._announce(self.status())

    @property
    def lease_ns(self) -> int:
        """Return the silence after which an id is free [ns]."""
        return self._settings.lease_ns

    # Requests

    def submit(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
        """
        Take in an observation; the answer comes through ``answer``, sooner or later, exactly once.

        :param robot: whose topic it came on
        :param arrival_ns: when it arrived, server's monotonic clock [ns]
        """
        self._observer.arrived(robot, observation, arrival_ns)  # before any thread may answer it
        try:
            with self._lock:
                life = self._admitted(robot, observation, arrival_ns)
                robot.last_request_id = observation.request_id
                pending, superseded = self._pending.admit(robot, observation, life, arrival_ns)
        except Rejected as refusal:
            self._answering.refuse(robot, observation, refusal, arrival_ns, self._serving.epoch)
            return
        life.send(pending.announcement())  # before it is prepared: the scheduler foresees it
        if superseded is not None:
            self._cancel(superseded, Reason.SUPERSEDED, f'by request {observation.request_id}')
        self._preparation.add(pending)

    def _admitted(self, robot: Robot, observation: Observation, arrival_ns: int) -> EngineLife:
        """Return the engine that serves an observation, or refuse it."""
        if observation.session != robot.session or not self._robots.is_current(robot):
            raise Rejected(Reason.UNKNOWN_SESSION, 'register (again) before asking')
        robot.seen_ns = arrival_ns
        life = self._serving.engine()
        check_observation(observation, robot, life.contract)
        period_ns, budget_ns = observation.minimum_period_ns, observation.budget_ns
        self._capacity.ask(robot.number, period_ns, budget_ns, arrival_ns, life.slowdown)
        return life

    def refuse(
        self, robot: Robot, observation: Observation, refusal: Rejected, arrival_ns: int
    ) -> None:
        """Answer an observation that can't be taken in."""
        self._observer.arrived(robot, observation, arrival_ns)
        self._answering.refuse(robot, observation, refusal, arrival_ns, self._serving.epoch)

    def set_budget(self, robot: Robot, budget_ns: int) -> None:
        """
        Change the response budget of the robot's request under way, if there is one.

        :raises Rejected: REJECTED_BUDGET
        """
        check_budget(budget_ns)
        with self._order:
            pending = self._pending.set_budget(robot, budget_ns)
            if pending is not None:
                pending.life.send(SetBudget(key=pending.key, budget_ns=budget_ns))

    def close(self) -> None:
        """Answer everything under way SHUTDOWN and end the engine process."""
        with self._lock:
            self._serving.stop()
        for pending in self._pending.drain():
            self._answering.conclude(pending, Reason.SHUTDOWN, 'the server is shutting down')
        self._say()
        self._engine.close()
        self._decoders.shutdown(wait=True, cancel_futures=True)

    # Inside

    def _prepare(self, pending: Pending) -> None:
        """Fill the slot; a decoder's thread."""
        good = not pending.answered  # else superseded while it waited
        if not good:
            self._pending.release(pending)
        else:
            good = self._fill_slot(pending)
            pending.decode_ns = self._clock.now_ns() - pending.arrival_ns
        self._preparation.prepared(pending, good=good)

    def _fill_slot(self, pending: Pending) -> bool:
        refusal = why_not_filled(pending)
        if refusal is not None:
            self._finish(pending, refusal.reason, refusal.detail)
        return refusal is None

    def _hand_over(self, pending: Pending) -> None:
        """Give a prepared request to the engine, unless it was answered in the meantime."""
        with self._order:
            submitted = self._pending.mark_submitted(pending)
            if submitted:
                request = pending.request(self._settings.reserved_ns)
                pending.life.send(Submit(request=request))
        if not submitted:
            self._release(pending)

    def _withdraw(self, robot: Robot, reason: Reason, detail: str) -> None:
        pending = self._pending.latest(robot)
        if pending is not None:
            self._cancel(pending, reason, detail)

    def _cancel(self, pending: Pending, reason: Reason, detail: str) -> None:
        """Answer a request now; its slot is free when the engine or the decoder lets go of it."""
        self._answering.conclude(pending, reason, detail)
        with self._order:
            if pending.submitted:
                pending.life.send(Cancel(key=pending.key))
        if self._preparation.withdraw(pending):
            self._pending.release(pending)

    def _release(self, pending: Pending) -> None:
        """Give a slot back that neither decoder nor engine uses any more."""
        self._pending.release(pending)
        self._preparation.ended(pending)

    def _finish(self, pending: Pending, reason: Reason, detail: str) -> None:
        """End a request whose slot nobody uses any more, and answer it unless that was done."""
        self._release(pending)
        self._answering.conclude(pending, reason, detail)

    def engine_record(self, life: EngineLife, record: Done | Dropped) -> None:
        """Take in a result; the engine watch's thread."""
        pending = self._pending.get(record.key)
        if pending is None or pending.life is not life:
            return
        if isinstance(record, Dropped):
            self._finish(pending, record.reason, record.detail)
            return
        rows = life.slots.actions[pending.slot].copy()
        self._pending.release(pending)
        self._answering.done(pending, record, rows)
        self._preparation.ended(pending)

    def engine_told(self, life: EngineLife, record: Beat | Timeline) -> None:
        """Hand on what an engine tells of itself; the engine watch's thread."""
        self._observer.engine_told(life.epoch, record, self._clock.now_ns())

    def engine_ready(self, life: EngineLife) -> None:
        """Serve with a warm engine; the engine watch's thread."""
        with self._lock:
            self._serving.begin(life)
        self._say()

    def engine_hangs(self, life: EngineLife, hangs: bool) -> None:
        """Answer everything under way HUNG, or serve on; the engine watch's thread."""
        with self._lock:
            self._serving.hang(life, hangs)
        if hangs:
            for pending in self._pending.all():
                self._cancel(pending, Reason.HUNG, 'a stage does not end; ask again')
        self._say()

    def engine_ended(self, next_epoch: int) -> None:
        """Answer everything under way ENGINE_RESTARTED; the engine watch's thread."""
        with self._lock:
            self._serving.end(next_epoch)
        self._observer.engine_ended(self._clock.now_ns())
        for pending in self._pending.drain():
            self._answering.conclude(
                pending, Reason.ENGINE_RESTARTED, 'ask again: a new engine starts'
            )
        self._preparation.reset()  # last: what was drained is never handed over
        self._say()
