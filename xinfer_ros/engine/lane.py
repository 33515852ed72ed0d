# SPDX-License-Identifier: Apache-2.0
"""A lane: the thread that executes the units of one stage."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage


class StageRunner(Protocol):
    """The part of a model that a lane needs."""

    def run(self, stage: Stage, slot_ids: list[int]) -> None:
        """Run one stage of the requests in these slots; return when it is complete."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEnd:
    """
    How a unit ended.

    :param unit: the unit
    :param started_ns: when the lane began it, monotonic [ns]
    :param ended_ns: when it was complete, monotonic [ns]
    :param error: what went wrong; None if nothing did
    """

    unit: Unit
    started_ns: int
    ended_ns: int
    error: Exception | None


class Lane:
    """
    Runs the units of one stage one after the other, in a thread of its own.

    One at once: a model runs each stage in one thread, see ``StagedModel``, and
    ``EngineSettings.device`` tells the scheduler so.

    :param stage: the stage
    :param model: what computes it
    :param clock: the engine's clock
    :param ended: called in the lane's thread when a unit is complete; must not block
    """

    def __init__(
        self, stage: Stage, model: StageRunner, clock: Clock, ended: Callable[[UnitEnd], None]
    ) -> None:
        self._model, self._clock, self._ended = model, clock, ended
        self._units: queue.SimpleQueue[Unit | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f'lane-{stage.name}', daemon=True)
        self._thread.start()

    def issue(self, unit: Unit) -> None:
        """Hand over a unit; returns at once."""
        self._units.put(unit)

    def close(self) -> None:
        """End the thread after the unit in execution."""
        self._units.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (unit := self._units.get()) is not None:
            started_ns = self._clock.now_ns()
            error: Exception | None = None
            try:
                self._model.run(unit.stage, [request.slot for request in unit.requests])
            except Exception as caught:
                error = caught
            ended_ns = self._clock.now_ns()
            self._ended(UnitEnd(unit=unit, started_ns=started_ns, ended_ns=ended_ns, error=error))
