# SPDX-License-Identifier: Apache-2.0
"""The scheduler: live requests and their stages. Values in, decisions out."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from xinfer_ros.core.request import QueueSight, Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Counts
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.decision import Decision

_STAGES = tuple(Stage)  # an index costs a tenth of a call of the class


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """
    A request whose last stage has ended.

    :param ask_after_ns: how long after its arrival the robot should ask again, 0 as it likes [ns]
    """

    request: Request
    ask_after_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFigures:
    """
    What a scheduler can tell of itself; what is summed up is so since its first event.

    :param running: units of each stage in execution
    :param waiting: requests that wait for each stage
    :param protected: live requests that the scheduling policy shields
    :param verdicts: decisions by ``Verdict``; one that is only repeated counts once
    :param prediction_error_ns: sum over units, see ``SchedulerCore.counters`` [ns]
    :param predictions: units in that sum
    """

    running: tuple[int, int, int]
    waiting: tuple[int, int, int]
    protected: int
    verdicts: tuple[int, ...]
    prediction_error_ns: int
    predictions: int


class Scheduler:
    """
    Keeps every live request; a scheduling policy, the core, says what starts.

    A driver (engine, simulator, replay) calls it; it owns no thread, clock or randomness. Times
    must never fall.

    :param core: the scheduling policy with its state; used by nobody else
    :param calibration: what the core was made of
    :param limits: units that may run at once on each lane, as the core knows them
    """

    def __init__(self, core: SchedulerCore, calibration: Calibration, limits: Counts) -> None:
        self._core, self._calibration, self._limits = core, calibration, limits
        self._live: dict[int, Request] = {}
        self._waiting: dict[int, Stage] = {}
        self._running: dict[int, Unit] = {}
        self._cancelled: set[int] = set()

    @property
    def waits(self) -> bool:
        """
        Return whether work waits beside a free lane, because the policy wants it so.

        If so, ask again after a tick: what speaks against the work may pass without an event.
        """
        if not self._waiting:
            return False
        running = _by_stage(unit.stage for unit in self._running.values())
        return any(running[stage] < self._limits[stage] for stage in self._waiting.values())

    def figures(self) -> SchedulerFigures:
        """Return what it can tell of itself."""
        verdicts, error_ns, predictions = self._core.counters()
        return SchedulerFigures(
            running=_by_stage(unit.stage for unit in self._running.values()),
            waiting=_by_stage(self._waiting.values()),
            protected=self._core.num_protected(),
            verdicts=verdicts,
            prediction_error_ns=error_ns,
            predictions=predictions,
        )

    def waiting(self) -> list[tuple[Request, Stage]]:
        """Return the requests that wait, each with its stage."""
        return [(self._live[key], stage) for key, stage in self._waiting.items()]

    def robot_of(self, key: int) -> int | None:
        """Return the number of the robot of a live request, None of any other."""
        request = self._live.get(key)
        return None if request is None else request.robot

    def keep_decisions(self, keep: bool) -> None:
        """Choose whether decisions are kept for ``take_decisions``."""
        self._core.keep_log(keep)

    def take_decisions(self) -> list[Decision]:
        """Return the decisions kept since the last call, in their order."""
        return [Decision.of(values) for values in self._core.take_decisions()]

    @property
    def next_expiry_ns(self) -> int | None:
        """Return when ``expire`` has something to do, None if nothing waits [ns]."""
        if not self._waiting:
            return None
        return min([self._live[key].expires_ns for key in self._waiting])

    @property
    def correction(self) -> tuple[float, float, float]:
        """Return the work that units of each stage turn out to hold over the calibration's."""
        vit, prefill, action = self._core.correction
        return vit, prefill, action

    @property
    def slowdown(self) -> float:
        """Return the work that units turn out to hold over that of the calibration."""
        work = self._calibration.work_ms
        seen = sum(w * c for w, c in zip(work, self._core.correction, strict=True))
        return seen / sum(work)

    def announce(
        self, robot: int, arrival_ns: int, budget_ns: int, period_ns: int, now_ns: int
    ) -> None:
        """
        Take in that a request has arrived and is being prepared; nothing can start by that.

        :param robot: small number of the robot, 0, 1, ...
        :param period_ns: ``TE``, least time between two requests of the robot [ns]
        """
        self._core.announce(
            now_ns=now_ns,
            robot=robot,
            arrival_ns=arrival_ns,
            budget_ns=budget_ns,
            period_ns=period_ns,
        )

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        return self._core.mirror_error

    def observe(self, robot: int, sight: QueueSight, now_ns: int) -> None:
        """Take in what an observation says of the action queue of a robot."""
        self._core.observe(
            now_ns=now_ns,
            robot=robot,
            executed_steps=sight.executed_steps,
            leftover_steps=sight.leftover_steps,
            horizon_steps=sight.horizon_steps,
            spacing_ns=sight.spacing_ns,
        )

    def submit(self, request: Request, now_ns: int) -> None:
        """Take in a request whose inputs lie in its slot."""
        self._core.submit(
            now_ns=now_ns,
            key=request.key,
            robot=request.robot,
            arrival_ns=request.arrival_ns,
            budget_ns=request.budget_ns,
            reserved_ns=request.reserved_ns,
            period_ns=request.period_ns,
        )
        self._live[request.key] = request
        self._waiting[request.key] = Stage.VIT

    def release(self, now_ns: int) -> tuple[list[Finished], list[Request]]:
        """
        Let answers leave that the policy has held back; call it right before ``dispatch``.

        :returns: as ``complete``
        """
        return self._ended(self._core.release(now_ns))

    def dispatch(self, now_ns: int) -> list[Unit]:
        """Return the units that start now, in this order."""
        started = []
        for number, stage, keys in self._core.dispatch(now_ns):
            for key in keys:
                del self._waiting[key]
            requests = tuple(self._live[key] for key in keys)
            unit = Unit(number=number, stage=_STAGES[stage], requests=requests)
            self._running[number] = unit
            started.append(unit)
        return started

    def complete(
        self, unit: Unit, now_ns: int, refused: Collection[int] = ()
    ) -> tuple[list[Finished], list[Request]]:
        """
        Take in the end of a unit: its requests wait for the next stage, or are done.

        :param refused: keys of members that the model has refused: they go no further
        :returns: requests whose last stage ended, and cancelled or refused ones whose slot is
            free now
        """
        del self._running[unit.number]
        self._cancelled.update(refused)
        finished, dropped = self._ended(self._core.complete(now_ns, unit.number))
        for key in self._keys(unit):
            if key in self._cancelled and unit.stage.following is not None:
                self._core.cancel(now_ns, key)
                dropped.append(self._end(key))
            elif key in self._live and unit.stage.following is not None:
                self._waiting[key] = unit.stage.following
        return finished, dropped

    def _ended(self, keys: Iterable[int]) -> tuple[list[Finished], list[Request]]:
        """Forget requests whose last stage has ended; return those to answer, and the others."""
        finished, dropped = [], []
        for key in keys:
            is_cancelled = key in self._cancelled
            request = self._end(key)
            if is_cancelled:  # nobody waits for it any more: nothing to pace
                dropped.append(request)
            else:
                ask_after_ns = self._core.pace_ns(request.robot)
                finished.append(Finished(request=request, ask_after_ns=ask_after_ns))
        return finished, dropped

    def cancel(self, key: int, now_ns: int) -> Request | None:
        """
        Stop a request: at once if it waits, at the end of its unit if it runs.

        :returns: the request if its slot is free now; None if it runs or is not known
        """
        if key in self._waiting:
            self._core.cancel(now_ns, key)
            return self._end(key)
        if key in self._live:
            self._cancelled.add(key)
        return None

    def expire(self, now_ns: int) -> list[Request]:
        """Drop and return waiting requests that nobody waits for any more."""
        late = [key for key in self._waiting if now_ns >= self._live[key].expires_ns]
        for key in late:
            self._core.cancel(now_ns, key)
        return [self._end(key) for key in late]

    def fail(self, unit: Unit, now_ns: int) -> list[Request]:
        """Take in the failure of a unit; return its requests, which are gone."""
        del self._running[unit.number]
        self._core.withdraw(now_ns, unit.number)
        return [self._end(key) for key in self._keys(unit)]

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a request that waits or runs; others are ignored."""
        if key in self._live:
            self._core.set_budget(key, budget_ns)
            self._live[key] = replace(self._live[key], budget_ns=budget_ns)

    @staticmethod
    def _keys(unit: Unit) -> Iterable[int]:
        return (request.key for request in unit.requests)

    def _end(self, key: int) -> Request:
        """Forget a request that the core has forgotten."""
        request = self._live.pop(key)
        self._waiting.pop(key, None)
        self._cancelled.discard(key)
        return request


def _by_stage(stages: Iterable[Stage]) -> tuple[int, int, int]:
    counts = [0, 0, 0]
    for stage in stages:
        counts[stage] += 1
    vit, prefill, action = counts
    return vit, prefill, action
