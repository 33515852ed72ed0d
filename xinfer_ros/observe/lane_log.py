# SPDX-License-Identifier: Apache-2.0
"""The timelines that engines send, as one."""

import threading
from collections import OrderedDict
from dataclasses import replace

from xinfer_ros.engine.seen import SeenUnit
from xinfer_ros.engine.seen import Timeline as Seen
from xinfer_ros.observe.timeline import LaneUnit, Timeline, Waiting

MAX_UNITS = 4096  # some twenty seconds of small units
MISSING_NS = 1_500_000_000  # what a silent engine said of waiting requests is not true any more


class LaneLog:
    """
    Keeps the units of late; thread-safe.

    A unit whose end is never told, as of an engine that dies, ends where it was last told of.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._units: OrderedDict[tuple[int, int], LaneUnit] = OrderedDict()
        self._waiting: tuple[Waiting, ...] = ()
        self._names: dict[int, str] = {}
        self._told_ns = 0

    def name(self, robot: int, robot_id: str) -> None:
        """Take in who has a number from now on."""
        with self._lock:
            self._names[robot] = robot_id

    def add(self, epoch: int, seen: Seen) -> None:
        """Take in what an engine has done since it last told."""
        with self._lock:
            self._end_running({(epoch, unit.number) for unit in seen.units})
            self._told_ns = seen.to_ns
            for unit in seen.units:
                self._add(epoch, unit)
            self._waiting = tuple(
                Waiting(
                    robot=self._name(waiting.robot),
                    key=waiting.key,
                    stage=waiting.stage,
                    since_ns=waiting.since_ns,
                    why=waiting.why,
                )
                for waiting in seen.waiting
            )

    def _add(self, epoch: int, unit: SeenUnit) -> None:
        self._units[epoch, unit.number] = LaneUnit(
            number=unit.number,
            stage=unit.stage,
            started_ns=unit.started_ns,
            ended_ns=unit.ended_ns,
            robots=tuple(self._name(robot) for robot in unit.robots),
            keys=unit.keys,
            protected=unit.protected,
        )
        if len(self._units) > MAX_UNITS:
            self._units.popitem(last=False)

    def _name(self, robot: int) -> str:
        return self._names.get(robot, f'robot {robot}')

    def _end_running(self, told: set[tuple[int, int]]) -> None:
        """End what ran when it was last told and is not told of any more."""
        for key, unit in self._units.items():
            if unit.ended_ns is None and key not in told:
                ended_ns = max(self._told_ns, unit.started_ns)
                self._units[key] = replace(unit, ended_ns=ended_ns)

    def timeline(self, since_ns: int, now_ns: int) -> Timeline:
        """Return what ran between two moments [ns], and who waits now if it is known."""
        with self._lock:
            units = [
                unit
                for unit in self._units.values()
                if unit.started_ns <= now_ns
                and (unit.ended_ns is None or unit.ended_ns >= since_ns)
            ]
            waiting = self._waiting if now_ns - self._told_ns <= MISSING_NS else ()
        units.sort(key=lambda unit: unit.started_ns)
        return Timeline(from_ns=since_ns, to_ns=now_ns, units=tuple(units), waiting=waiting)
