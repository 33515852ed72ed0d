# SPDX-License-Identifier: Apache-2.0
"""The scheduler: live requests and their stages. Values in, decisions out."""

from collections.abc import Mapping
from dataclasses import replace

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.policy import SchedulerView, SchedulingPolicy


class Scheduler:
    """
    Keeps every live request and asks the policy what starts next.

    A driver (engine, simulator, replay) calls it; it owns no thread, clock or randomness.

    :param policy: the scheduling policy
    :param limits: units that may run at once on each lane
    """

    def __init__(self, policy: SchedulingPolicy, limits: Mapping[Stage, int]) -> None:
        self._policy = policy
        self._limits = dict(limits)
        self._ready: dict[Stage, list[Request]] = {stage: [] for stage in Stage}
        self._running: dict[int, Unit] = {}
        self._cancelled: set[int] = set()
        self._last_unit = 0

    def submit(self, request: Request, now_ns: int) -> None:
        """Take in a request whose inputs lie in its slot."""
        self._ready[Stage.VIT].append(request)

    def dispatch(self, now_ns: int) -> list[Unit]:
        """Return the units that start now, in this order."""
        started = []
        while (work := self._policy.choose(self._view(), now_ns)) is not None:
            self._last_unit += 1
            unit = Unit(number=self._last_unit, stage=work.stage, requests=work.requests)
            for request in work.requests:
                self._ready[work.stage].remove(request)
            self._running[unit.number] = unit
            started.append(unit)
        return started

    def complete(self, unit: Unit, now_ns: int) -> tuple[list[Request], list[Request]]:
        """
        Take in the end of a unit: its requests wait for the next stage, or are done.

        :returns: requests whose last stage ended, and cancelled ones whose slot is free now
        """
        running = self._running.pop(unit.number)
        finished, dropped = [], []
        for request in running.requests:
            following = running.stage.following
            if request.key in self._cancelled:
                self._cancelled.discard(request.key)
                dropped.append(request)
            elif following is None:
                finished.append(request)
            else:
                self._ready[following].append(request)
        return finished, dropped

    def cancel(self, key: int, now_ns: int) -> Request | None:
        """
        Stop a request: at once if it waits, at the end of its unit if it runs.

        :returns: the request if its slot is free now; None if it runs or is not known
        """
        for waiting in self._ready.values():
            for request in waiting:
                if request.key == key:
                    waiting.remove(request)
                    return request
        if any(r.key == key for unit in self._running.values() for r in unit.requests):
            self._cancelled.add(key)
        return None

    def expire(self, now_ns: int) -> list[Request]:
        """Drop and return waiting requests that nobody waits for any more."""
        expired = []
        for stage, waiting in self._ready.items():
            late = [request for request in waiting if now_ns >= request.expires_ns]
            if late:
                self._ready[stage] = [r for r in waiting if now_ns < r.expires_ns]
                expired += late
        return expired

    def fail(self, unit: Unit, now_ns: int) -> list[Request]:
        """Take in the failure of a unit; return its requests, which are gone."""
        running = self._running.pop(unit.number)
        self._cancelled -= {request.key for request in running.requests}
        return list(running.requests)

    def set_budget(self, key: int, budget_ns: int, now_ns: int) -> None:
        """Change the response budget of a request that waits or runs; others are ignored."""
        for waiting in self._ready.values():
            for index, request in enumerate(waiting):
                if request.key == key:
                    waiting[index] = replace(request, budget_ns=budget_ns)
        for number, unit in self._running.items():
            if any(request.key == key for request in unit.requests):
                requests = tuple(
                    replace(r, budget_ns=budget_ns) if r.key == key else r for r in unit.requests
                )
                self._running[number] = replace(unit, requests=requests)

    def _view(self) -> SchedulerView:
        running = list(self._running.values())
        used = {stage: sum(unit.stage is stage for unit in running) for stage in Stage}
        free = {stage: self._limits[stage] - used[stage] for stage in Stage}
        return SchedulerView(ready=self._ready, running=running, free=free)
