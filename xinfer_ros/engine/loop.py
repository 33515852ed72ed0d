# SPDX-License-Identifier: Apache-2.0
"""Drives a pipeline in real time, with a lane for each stage."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from xinfer_ros.core.batch import ByStage
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import Fault
from xinfer_ros.engine.inbox import Inbox
from xinfer_ros.engine.lane import Classify, Lane, StageRunner, UnitEnd
from xinfer_ros.engine.pipeline import DecisionLog, Pipeline
from xinfer_ros.engine.records import Record
from xinfer_ros.sched.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """
    How a pipeline is driven.

    :param num_states: states of the model that requests can hold
    :param workers: units of each stage at once
    :param stages: those that the model has
    :param unit_timeout_ns: time after which a unit is given up, and the process with it [ns]
    :param classify: what an error of a unit says of the device
    :param begin: called once in the thread of every worker
    :param decision_log: gets everything that the scheduler does, None if nobody wants to know
    """

    num_states: int
    workers: ByStage = (1, 1, 1)
    stages: tuple[Stage, ...] = tuple(Stage)
    unit_timeout_ns: int = 10_000_000_000
    classify: Classify = lambda error: Fault.MODEL
    begin: Callable[[Stage], None] = lambda stage: None
    decision_log: DecisionLog | None = None


class EngineLoop:
    """
    The pipeline with its lanes and its thread.

    The end of a unit is handled in the thread of its lane: what starts by it starts, and what is
    done is sent, without another thread being woken. One thread at a time is in the pipeline.

    :param scheduler: decides; called by one thread at a time
    :param model: computes the stages
    :param clock: monotonic time, the same as the front end's
    :param send: takes results for the front end; called by one thread at a time
    :param inbox: where records arrive
    """

    def __init__(
        self,
        scheduler: Scheduler,
        model: StageRunner,
        clock: Clock,
        send: Callable[[Record], None],
        settings: LoopSettings,
        inbox: Inbox,
    ) -> None:
        self._clock, self._inbox = clock, inbox
        self._turn = threading.Lock()
        self._issued: list[tuple[Unit, tuple[int, ...]]] = []
        self._waits_until_ns, self._is_over = 0, False
        self._error: Exception | None = None
        self._lanes = {
            stage: Lane(
                stage,
                model,
                clock,
                self._unit_ended,
                workers=settings.workers[stage],
                classify=settings.classify,
                begin=settings.begin,
            )
            for stage in settings.stages
        }
        self._pipeline = Pipeline(
            scheduler,
            self._issue,
            send,
            num_states=settings.num_states,
            stages=settings.stages,
            unit_timeout_ns=settings.unit_timeout_ns,
            decision_log=settings.decision_log,
        )

    def run(self) -> None:
        """
        Serve until the inbox says that no more will come.

        :raises EngineFailure: if the device is past help
        """
        while not self._is_over:
            self._inbox.wait(self._wait_s())
            self._take(None)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the lanes after the units in execution."""
        for lane in self._lanes.values():
            lane.close()

    def _wait_s(self) -> float:
        """Return how long nothing is due [s]."""
        with self._turn:
            self._waits_until_ns = self._pipeline.wake_ns
            return max(self._waits_until_ns - self._clock.now_ns(), 0) / 1e9

    def _take(self, end: UnitEnd | None) -> bool:
        """
        Take in what has come, then the end of a unit, None if only time has passed.

        After an error nobody goes into the pipeline any more; ``run`` raises the first one.

        :returns: whether the thread of ``run`` waits for too long after the end of a unit
        """
        with self._turn:
            if self._is_over:
                return False
            try:
                self._step(end)
            except Exception as error:
                self._error, self._is_over = error, True
            if self._is_over:
                return end is not None
            return end is not None and self._pipeline.wake_ns < self._waits_until_ns

    def _step(self, end: UnitEnd | None) -> None:
        is_done = False
        for record in self._inbox.records():
            if record is None:
                self._is_over = True
                return
            self._pipeline.step(record, self._clock.now_ns())
            is_done = end is None
        if not is_done:
            self._pipeline.step(end, self._clock.now_ns())
        self._hand_out()

    def _unit_ended(self, end: UnitEnd) -> None:
        """Take in the end of a unit; the thread of its lane."""
        if self._take(end):
            self._inbox.ring()

    def _issue(self, unit: Unit, state_ids: tuple[int, ...]) -> None:
        self._issued.append((unit, state_ids))

    def _hand_out(self) -> None:
        """Give units to their lanes, last of all: a thread that wakes earlier only waits."""
        for unit, state_ids in self._issued:
            self._lanes[unit.stage].issue(unit, state_ids)
        self._issued.clear()
