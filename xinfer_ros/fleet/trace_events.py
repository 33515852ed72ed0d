# SPDX-License-Identifier: Apache-2.0
"""
A decision log as trace events, for Perfetto and Chrome's tracing page.

Source: Trace Event Format (JSON object with ``traceEvents``; times ``ts`` and ``dur`` in µs).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.request_account import ISSUED
from xinfer_ros.fleet.run_events import (
    BudgetChanged,
    Counted,
    Decided,
    Ended,
    LoggedRequest,
    LoggedUnit,
    Missing,
    RunEvent,
    Submitted,
    UnitEnded,
    UnitStarted,
)

TraceEvent = dict[str, Any]
LANES, ROBOTS, SCHEDULER = 1, 2, 3  # process ids: groups of tracks
_MOST_LANES = 100  # units of a stage at once, more than there can be
_COLOURS = {True: 'terrible', False: 'good'}  # names of the format: protected, ordinary


class TraceTracks:
    """
    Turns what happened into trace events. Times count from the first call of the log.

    :param names: of robots by their number
    :param begins_ns: when the log begins [ns]
    """

    def __init__(self, names: Mapping[int, str], begins_ns: int) -> None:
        self._names, self._begins_ns = names, begins_ns
        self._places: dict[int, int] = {}  # track of each running unit
        self._threads: set[tuple[int, int]] = set()
        self._newest: dict[int, LoggedRequest] = {}  # of each robot
        self._from_ns: dict[int, int] = {}  # where each of them takes the track of its robot
        self._cut_ns: dict[int, int] = {}  # where a newer request of its robot takes the track
        self._drawn_ns: dict[int, int] = {}  # to where the track of each robot is full
        self._ready_ns: dict[int, int] = {}  # since when a request waits

    def head(self) -> Iterator[TraceEvent]:
        """Yield the names of the groups of tracks."""
        for pid, name in ((LANES, 'lanes'), (ROBOTS, 'robots'), (SCHEDULER, 'scheduler')):
            yield _name('process_name', pid, 0, name)
            yield {**_name('process_sort_index', pid, 0, ''), 'args': {'sort_index': pid}}

    def take(self, event: RunEvent) -> Iterator[TraceEvent]:
        """Yield what an event of the run becomes."""
        match event:
            case Submitted():
                yield from self._submitted(event)
            case Decided():
                yield from self._decided(event)
            case UnitStarted():
                self._places[event.unit.number] = self._free_place(event.unit.stage)
            case UnitEnded():
                yield from self._unit(event)
            case BudgetChanged():
                yield self._instant(
                    'budget changed', event.request, event.at_ns,
                    {'budget_ms': event.request.budget_ns / 1e6},
                )  # fmt: skip
            case Ended():
                yield from self._ended(event)
            case Counted():
                yield from self._counted(event)
            case Missing():
                for kept in (
                    self._places, self._newest, self._from_ns, self._cut_ns, self._ready_ns,
                ):  # fmt: skip
                    kept.clear()
                yield {
                    'ph': 'i', 's': 'g', 'pid': SCHEDULER, 'tid': 0,
                    'name': 'the log lacks what was before', 'ts': self._us(event.at_ns),
                    'args': {},
                }  # fmt: skip

    def _us(self, at_ns: int) -> float:
        return max(at_ns - self._begins_ns, 0) / 1e3

    def _thread(self, pid: int, tid: int, name: str) -> Iterator[TraceEvent]:
        """Yield the name of a track when it is first met."""
        if (pid, tid) not in self._threads:
            self._threads.add((pid, tid))
            yield _name('thread_name', pid, tid, name)

    def _robot(self, number: int) -> str:
        return self._names.get(number, f'robot {number}')

    def _free_place(self, stage: Stage) -> int:
        taken = set(self._places.values())
        first = stage * _MOST_LANES
        return next(place for place in range(first, first + _MOST_LANES) if place not in taken)

    def _slice(
        self, pid: int, tid: int, name: str, from_ns: int, to_ns: int, args: Mapping[str, Any]
    ) -> TraceEvent:
        begin_ns = max(from_ns, self._begins_ns)
        return {
            'ph': 'X', 'pid': pid, 'tid': tid, 'name': name, 'ts': self._us(begin_ns),
            'dur': max(to_ns - begin_ns, 0) / 1e3, 'args': dict(args),
        }  # fmt: skip

    def _on_robot(
        self, robot: int, name: str, from_ns: int, to_ns: int, args: Mapping[str, Any]
    ) -> TraceEvent:
        self._drawn_ns[robot] = max(self._drawn_ns.get(robot, 0), to_ns)
        return self._slice(ROBOTS, robot, name, from_ns, to_ns, args)

    def _instant(
        self, name: str, request: LoggedRequest, at_ns: int, args: Mapping[str, Any]
    ) -> TraceEvent:
        return {
            'ph': 'i', 's': 't', 'pid': ROBOTS, 'tid': request.robot, 'name': name,
            'ts': self._us(at_ns), 'args': {'request': request.key, **args},
        }  # fmt: skip

    def _submitted(self, event: Submitted) -> Iterator[TraceEvent]:
        request = event.request
        older = self._newest.get(request.robot)
        # it has arrived while the one before was under way: slices of a track must not overlap
        from_ns = max(request.arrival_ns, self._drawn_ns.get(request.robot, 0))
        self._from_ns[request.key] = from_ns
        if older is not None:
            self._cut_ns[older.key] = from_ns
        self._newest[request.robot], self._ready_ns[request.key] = request, event.at_ns
        yield from self._thread(ROBOTS, request.robot, self._robot(request.robot))
        yield self._instant(
            'submitted', request, event.at_ns,
            {'slack_ms': _finite(event.slack_ms), 'budget_ms': request.budget_ns / 1e6},
        )  # fmt: skip

    def _decided(self, event: Decided) -> Iterator[TraceEvent]:
        decision = event.decision
        if decision.verdict in ISSUED:
            return  # its unit tells
        yield from self._thread(ROBOTS, event.request.robot, self._robot(event.request.robot))
        args: dict[str, Any] = {
            'stage': decision.stage.name,
            'why': decision.reason(),
            'slack_ms': _finite(event.slack_ms),
            'checked_slack': _finite(decision.slack),
            'checked_cost': _finite(decision.cost),
        }
        if decision.against is not None:
            args['against_request'] = decision.against
        if event.against is not None:
            args['against_robot'] = self._robot(event.against.robot)
        yield self._instant(decision.verdict.name.lower(), event.request, event.at_ns, args)
        if event.against is not None:
            yield from self._arrow(event, event.against)

    def _arrow(self, event: Decided, against: LoggedRequest) -> Iterator[TraceEvent]:
        """Yield an arrow from the request that is favoured to the one that waits for its sake."""
        arrow = {
            'cat': 'deferral', 'name': 'waits for', 'pid': ROBOTS, 'ts': self._us(event.at_ns),
            'id': f'{event.request.key}.{event.at_ns - self._begins_ns}',
        }  # fmt: skip
        yield {**arrow, 'ph': 's', 'tid': against.robot}
        yield {**arrow, 'ph': 'f', 'bp': 'e', 'tid': event.request.robot}

    def _unit(self, event: UnitEnded) -> Iterator[TraceEvent]:
        unit = event.unit
        place = self._places.pop(unit.number)
        number = place % _MOST_LANES + 1
        yield from self._thread(LANES, place, f'{unit.stage.name} {number}')
        robots = [self._robot(request.robot) for request in unit.requests]
        args = {
            'unit': unit.number,
            'requests': [request.key for request in unit.requests],
            'robots': robots,
            'protected': unit.protected,
            'good': event.good,
            'later_than_predicted_ms': (event.at_ns - unit.foreseen_end_ns) / 1e6,
        }
        whole = self._slice(LANES, place, ', '.join(robots), unit.started_ns, event.at_ns, args)
        yield {**whole, 'cname': _COLOURS[unit.protected]}
        for request in unit.requests:
            yield from self._stage(request, unit, event.at_ns, place)

    def _stage(
        self, request: LoggedRequest, unit: LoggedUnit, ended_ns: int, place: int
    ) -> Iterator[TraceEvent]:
        """Yield how a request waited and ran on its robot's track, with an arrow to the lane."""
        until_ns = self._cut_ns.get(request.key, ended_ns)
        if unit.started_ns >= until_ns:
            return  # a newer request of the robot is shown there
        tid, name = request.robot, unit.stage.name
        yield from self._thread(ROBOTS, tid, self._robot(tid))
        ready_ns = self._ready_ns.pop(request.key, unit.started_ns)
        if ready_ns < unit.started_ns:
            yield self._on_robot(tid, f'waits for {name}', ready_ns, unit.started_ns, {})
        args = {'unit': unit.number}
        yield self._on_robot(tid, name, unit.started_ns, min(ended_ns, until_ns), args)
        arrow = {
            'cat': 'unit', 'name': 'runs in', 'ts': self._us(unit.started_ns),
            'id': f'{request.key}.{unit.number}',
        }  # fmt: skip
        yield {**arrow, 'ph': 's', 'pid': ROBOTS, 'tid': tid}
        yield {**arrow, 'ph': 'f', 'bp': 'e', 'pid': LANES, 'tid': place}
        self._ready_ns[request.key] = ended_ns

    def _ended(self, event: Ended) -> Iterator[TraceEvent]:
        request = event.request
        self._ready_ns.pop(request.key, None)
        from_ns = self._from_ns.pop(request.key, request.arrival_ns)
        until_ns = min(self._cut_ns.pop(request.key, event.at_ns), event.at_ns)
        if self._newest.get(request.robot) is request:
            del self._newest[request.robot]
        args = {
            'outcome': event.outcome.value,
            'budget_ms': request.budget_ns / 1e6,
            'late_ms': event.late_ns / 1e6,
            'asked_back_after_ms': event.pace_ns / 1e6,
        }
        name = f'request {request.key}' + (' late' if event.is_late else '')
        yield from self._thread(ROBOTS, request.robot, self._robot(request.robot))
        yield self._on_robot(request.robot, name, from_ns, until_ns, args)
        late = {'late_ms': event.late_ns / 1e6}
        yield self._instant('deadline', request, request.deadline_ns, late)

    def _counted(self, event: Counted) -> Iterator[TraceEvent]:
        for name, counts in (('waiting', event.waiting), ('running', event.running)):
            args: dict[str, int] = {
                stage.name: count for stage, count in zip(Stage, counts, strict=True)
            }
            yield self._counter(name, event.at_ns, args)
        yield self._counter('protected', event.at_ns, {'requests': event.protected})

    def _counter(self, name: str, at_ns: int, args: Mapping[str, int]) -> TraceEvent:
        return {
            'ph': 'C', 'pid': SCHEDULER, 'tid': 0, 'name': name, 'ts': self._us(at_ns),
            'args': dict(args),
        }  # fmt: skip


def _name(kind: str, pid: int, tid: int, name: str) -> TraceEvent:
    return {'ph': 'M', 'pid': pid, 'tid': tid, 'name': kind, 'args': {'name': name}}


def _finite(value: float) -> float | None:
    """Return a number that JSON has, None for infinity."""
    return round(value, 3) if math.isfinite(value) else None
