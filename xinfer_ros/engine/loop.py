# SPDX-License-Identifier: Apache-2.0
"""Drives a pipeline in real time, with a lane for each stage."""

import queue
from collections.abc import Callable
from dataclasses import dataclass

from xinfer_ros.core.batch import ByStage
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import Fault
from xinfer_ros.engine.lane import Classify, Lane, StageRunner
from xinfer_ros.engine.pipeline import Event, Pipeline, Recorder
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
    :param recorder: takes down every unit, None if nobody wants to know
    """

    num_states: int
    workers: ByStage = (1, 1, 1)
    stages: tuple[Stage, ...] = tuple(Stage)
    unit_timeout_ns: int = 10_000_000_000
    classify: Classify = lambda error: Fault.MODEL
    begin: Callable[[Stage], None] = lambda stage: None
    recorder: Recorder | None = None


class EngineLoop:
    """
    The pipeline with its lanes and its thread.

    :param scheduler: decides; called in the thread of ``run`` only
    :param model: computes the stages
    :param clock: monotonic time, the same as the front end's
    :param send: takes results for the front end; called in the thread of ``run``
    :param events: where records arrive, for who has them before there is a model; None to make one
    """

    def __init__(
        self,
        scheduler: Scheduler,
        model: StageRunner,
        clock: Clock,
        send: Callable[[Record], None],
        settings: LoopSettings,
        events: 'queue.SimpleQueue[Event | None] | None' = None,
    ) -> None:
        self._clock = clock
        self._events = events if events is not None else queue.SimpleQueue()
        self._lanes = {
            stage: Lane(
                stage,
                model,
                clock,
                self._events.put,
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
            recorder=settings.recorder,
        )

    def post(self, record: Record | None) -> None:
        """Hand in a record of the front end, None to end ``run``; from any thread."""
        self._events.put(record)

    def run(self) -> None:
        """
        Serve until None is posted.

        :raises EngineFailure: if the device is past help
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

    def close(self) -> None:
        """End the lanes after the units in execution."""
        for lane in self._lanes.values():
            lane.close()

    def _issue(self, unit: Unit, state_ids: tuple[int, ...]) -> None:
        self._lanes[unit.stage].issue(unit, state_ids)
