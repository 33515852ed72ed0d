# SPDX-License-Identifier: Apache-2.0
"""What the lanes do and why requests wait, kept while somebody watches."""

from collections.abc import Iterable, Mapping

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.seen import SeenUnit, SeenWaiting, Timeline
from xinfer_ros.sched.decision import Decision, Verdict
from xinfer_ros.sched.scheduler import Scheduler

MAX_UNITS = 160  # of one timeline, and
MAX_WAITING = 48  # requests: together they fit into a record
NO_ROOM = 'waits: its lane had no room yet, or the scheduling policy has taken others first'


class LaneWatch:
    """
    What happened since the last timeline, in bounded memory.

    A unit that was issued before the watch began is not known.

    :param scheduler: whose decisions are kept
    :param names: of robots by their number; may grow
    :param now_ns: when the watch begins [ns]
    """

    def __init__(self, scheduler: Scheduler, names: Mapping[int, str], now_ns: int) -> None:
        self._scheduler, self._names, self._from_ns = scheduler, names, now_ns
        self._running: dict[int, tuple[Unit, int]] = {}
        self._ended: list[tuple[Unit, int, int]] = []
        self._num_left_out = 0
        self._newest: dict[tuple[int, Stage], Decision] = {}

    def issued(self, unit: Unit, now_ns: int) -> None:
        """Take in that a lane was given a unit."""
        self._running[unit.number] = unit, now_ns

    def ended(self, unit: Unit, now_ns: int) -> None:
        """Take in that a unit was seen to end."""
        known = self._running.pop(unit.number, None)
        if known is None:
            return
        if len(self._ended) < MAX_UNITS:
            self._ended.append((*known, now_ns))
        else:
            self._num_left_out += 1

    def timeline(self, ready_ns: Mapping[int, int], now_ns: int) -> Timeline:
        """
        Return what ran since the last call and what waits now.

        :param ready_ns: since when each request waits for its stage, by key [ns]
        """
        for decision in self._scheduler.take_decisions():
            self._newest[decision.key, decision.stage] = decision
        ended = [self._seen(*unit) for unit in self._ended]
        running = [self._seen(*unit, None) for unit in self._running.values()]
        waiting = self._scheduler.waiting()
        timeline = Timeline(
            from_ns=self._from_ns,
            to_ns=now_ns,
            units=tuple(ended + running),
            waiting=tuple(
                self._told(request, stage, ready_ns[request.key])
                for request, stage in waiting[:MAX_WAITING]
            ),
            left_out=self._num_left_out + max(len(waiting) - MAX_WAITING, 0),
        )
        self._begin(now_ns, [request.key for request, _ in waiting])
        return timeline

    def _begin(self, now_ns: int, waiting: Iterable[int]) -> None:
        """Forget what was told; of requests that wait or run the decisions are kept."""
        self._from_ns, self._num_left_out = now_ns, 0
        self._ended.clear()
        kept = set(waiting)
        kept.update(request.key for unit, _ in self._running.values() for request in unit.requests)
        self._newest = {at: told for at, told in self._newest.items() if at[0] in kept}

    def _seen(self, unit: Unit, started_ns: int, ended_ns: int | None) -> SeenUnit:
        keys = tuple(request.key for request in unit.requests)
        newest = [self._newest.get((key, unit.stage)) for key in keys]
        return SeenUnit(
            number=unit.number,
            stage=unit.stage,
            started_ns=started_ns,
            ended_ns=ended_ns,
            robots=tuple(request.robot for request in unit.requests),
            keys=keys,
            protected=any(
                told is not None and told.verdict is Verdict.ISSUED_PROTECTED for told in newest
            ),
        )

    def _told(self, request: Request, stage: Stage, since_ns: int) -> SeenWaiting:
        decision = self._newest.get((request.key, stage))
        return SeenWaiting(
            robot=request.robot,
            key=request.key,
            stage=stage,
            since_ns=since_ns,
            why=NO_ROOM if decision is None else decision.reason(self._called),
        )

    def _called(self, key: int) -> str:
        """Return what a request is called: by its robot, while it is here."""
        robot = self._scheduler.robot_of(key)
        if robot is None:
            return f'request {key}'
        return f'request {key} of {self._names.get(robot, f"robot {robot}")}'
