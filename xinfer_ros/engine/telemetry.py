# SPDX-License-Identifier: Apache-2.0
"""What the engine tells of itself: figures with every beat, a timeline while somebody watches."""

from collections.abc import Mapping
from dataclasses import asdict

from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.lane_watch import LaneWatch
from xinfer_ros.engine.records import Beat
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.sched.scheduler import Scheduler


class Telemetry:
    """
    Its methods are called one at a time, by the pipeline; it reads no clock.

    :param scheduler: what it tells of
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._issued_ns: dict[int, int] = {}
        self._running = [0 for _ in Stage]
        self._busy_ns = [0 for _ in Stage]  # up to the end of the last unit of each
        self._busy_from_ns = [0 for _ in Stage]  # of the lanes that run
        self._names: dict[int, str] = {}
        self._watch: LaneWatch | None = None

    @property
    def oldest_ns(self) -> int | None:
        """Return when the oldest unit in execution was issued, None if there is none [ns]."""
        return min(self._issued_ns.values(), default=None)

    def named(self, robot: int, name: str) -> None:
        """Take in who a robot is."""
        self._names[robot] = name

    def watch(self, on: bool, now_ns: int) -> None:
        """Begin to keep what a timeline tells, or stop it."""
        self._scheduler.keep_decisions(on)
        self._scheduler.take_decisions()
        self._watch = LaneWatch(self._scheduler, self._names, now_ns) if on else None

    def issued(self, unit: Unit, now_ns: int) -> None:
        """Take in that a lane was given a unit."""
        self._issued_ns[unit.number] = now_ns
        if not self._running[unit.stage]:
            self._busy_from_ns[unit.stage] = now_ns
        self._running[unit.stage] += 1
        if self._watch is not None:
            self._watch.issued(unit, now_ns)

    def ended(self, unit: Unit, now_ns: int) -> None:
        """Take in that a unit was seen to end, well or not."""
        del self._issued_ns[unit.number]
        self._running[unit.stage] -= 1
        if not self._running[unit.stage]:
            self._busy_ns[unit.stage] += now_ns - self._busy_from_ns[unit.stage]
        if self._watch is not None:
            self._watch.ended(unit, now_ns)

    def timeline(self, ready_ns: Mapping[int, int], now_ns: int) -> Timeline | None:
        """
        Return what ran since the last call and what waits, None if nobody watches.

        :param ready_ns: since when each request waits for its stage, by key [ns]
        """
        return None if self._watch is None else self._watch.timeline(ready_ns, now_ns)

    def beat(self, now_ns: int) -> Beat:
        """Return a sign of life with all figures."""
        oldest_ns = self.oldest_ns
        return Beat(
            oldest_unit_ns=now_ns - oldest_ns if oldest_ns is not None else 0,
            slowdown=self._scheduler.slowdown,
            correction=self._scheduler.correction,
            mirror_error=self._scheduler.mirror_error,
            busy_ns=self._busy(now_ns),
            **asdict(self._scheduler.figures()),
        )

    def _busy(self, now_ns: int) -> tuple[int, int, int]:
        vit, prefill, action = (
            self._busy_ns[stage] + (now_ns - self._busy_from_ns[stage]) * (running > 0)
            for stage, running in enumerate(self._running)
        )
        return vit, prefill, action
