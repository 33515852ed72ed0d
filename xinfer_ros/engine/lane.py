# SPDX-License-Identifier: Apache-2.0
"""A lane: the threads that execute the units of one stage."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from xinfer_ros.core.batch import Batch
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.core.thread_name import name_this_thread
from xinfer_ros.engine.health import Fault
from xinfer_ros.errors import Reason, Rejected

Classify = Callable[[Exception], Fault]


class StageRunner(Protocol):
    """The part of a model that a lane needs."""

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        """Run one stage of a batch; return when it is complete, with the members refused."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEnd:
    """
    How a unit ended.

    :param unit: the unit
    :param started_ns: when the lane began it, monotonic [ns]
    :param ended_ns: when it was complete, monotonic [ns]
    :param error: what went wrong with all of it; None if nothing did
    :param fault: what ``error`` says of the device
    :param refused: slots of members that were refused, and why; the others are good
    """

    unit: Unit
    started_ns: int
    ended_ns: int
    error: Exception | None = None
    fault: Fault = Fault.MODEL
    refused: dict[int, Rejected] = field(default_factory=dict)


class Lane:
    """
    Runs the units of one stage, each in the thread of a free worker.

    A worker launches a unit and waits for its end, so the threads are as many as units may run at
    once. On CUDA a worker has a stream of its own; see ``models``.

    :param stage: the stage
    :param model: what computes it
    :param clock: the engine's clock
    :param ended: called in a worker's thread when a unit is complete; must not block
    :param workers: units at once
    :param classify: what an error says of the device
    :param begin: called once in every worker's thread, before its first unit
    """

    def __init__(
        self,
        stage: Stage,
        model: StageRunner,
        clock: Clock,
        ended: Callable[[UnitEnd], None],
        *,
        workers: int = 1,
        classify: Classify = lambda error: Fault.MODEL,
        begin: Callable[[Stage], None] = lambda stage: None,
    ) -> None:
        self._begin = begin
        self._stage, self._model, self._clock, self._ended = stage, model, clock, ended
        self._classify = classify
        self._units: queue.SimpleQueue[tuple[Unit, tuple[int, ...]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(
                target=self._work, args=(number,), name=f'{stage.name}-{number}', daemon=True
            )
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def issue(self, unit: Unit, state_ids: tuple[int, ...]) -> None:
        """
        Hand over a unit; returns at once.

        :param state_ids: states of the model that its requests hold, in their order
        """
        self._units.put((unit, state_ids))

    def close(self) -> None:
        """End the threads after the units in execution."""
        for _ in self._threads:
            self._units.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, worker: int) -> None:
        name_this_thread(f'{self._stage.name.lower()}-{worker}')
        self._begin(self._stage)
        while (work := self._units.get()) is not None:
            unit, state_ids = work
            slot_ids = tuple(request.slot for request in unit.requests)
            batch = Batch(slot_ids=slot_ids, state_ids=state_ids, worker=worker)
            started_ns = self._clock.now_ns()
            error: Exception | None = None
            fault, refused = Fault.MODEL, dict[int, Rejected]()
            try:
                refused = self._run(batch)
            except Exception as caught:
                error, fault = caught, self._classify(caught)
            self._ended(
                UnitEnd(
                    unit=unit,
                    started_ns=started_ns,
                    ended_ns=self._clock.now_ns(),
                    error=error,
                    fault=fault,
                    refused=refused,
                )
            )

    def _run(self, batch: Batch) -> dict[int, Rejected]:
        """Run a batch; one that the device has no memory for is tried again in halves."""
        try:
            return self._model.run(self._stage, batch)
        except Exception as error:
            if self._classify(error) is not Fault.OUT_OF_MEMORY:
                raise
        if len(batch.slot_ids) == 1:
            detail = f'the device has no memory for {self._stage.name} of one request'
            return {batch.slot_ids[0]: Rejected(Reason.OUT_OF_MEMORY, detail)}
        first, second = _halves(batch)
        return self._run(first) | self._run(second)


def _halves(batch: Batch) -> tuple[Batch, Batch]:
    middle = len(batch.slot_ids) // 2
    first, second = slice(0, middle), slice(middle, None)
    return (
        Batch(
            slot_ids=batch.slot_ids[first],
            state_ids=batch.state_ids[first],
            worker=batch.worker,
        ),
        Batch(
            slot_ids=batch.slot_ids[second],
            state_ids=batch.state_ids[second],
            worker=batch.worker,
        ),
    )
