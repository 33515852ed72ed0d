# SPDX-License-Identifier: Apache-2.0
"""The units of a decision log as rows, for the audit of predictions."""

from collections.abc import Iterable

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.run_record import Change, RecordedRun, Rows, RunFacts
from xinfer_ros.sched.decision_log import LogPart
from xinfer_ros.sched.journal import TOLD, Call, CallKind, Started
from xinfer_ros.sched.log_files import DecisionLog

_KEY, _ROBOT = (TOLD[CallKind.SUBMIT].index(name) for name in ('key', 'robot'))


def recorded_run(log: DecisionLog) -> RecordedRun:
    """
    Return what ran by a log, from the last place on from which nothing is missing.

    :raises ConfigError: if a call of it cannot be read, or calls contradict each other
    """
    parts = log.unbroken()
    header = parts[0].header
    rows = _Rows()
    for part in parts:
        for call in part.calls():
            if rows.from_ns is None:
                rows.begin(part, call.now_ns)
            rows.take(call)
    run = RecordedRun(
        transitions=_array(rows.transitions, 5),
        members=_array(rows.members, 3),
        from_ns=rows.from_ns or 0,
        calibration=header.calibration,
        facts=RunFacts(policy=header.policy, model=header.model, date=header.date),
    )
    run.check_sizes(run.calibration)
    return run


def _array(rows: list[tuple[int, ...]], width: int) -> Rows:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


class _Rows:
    """Collects transitions and members, as ``RecordedRun`` has them."""

    def __init__(self) -> None:
        self.transitions: list[tuple[int, ...]] = []
        self.members: list[tuple[int, ...]] = []
        self.from_ns: int | None = None
        self._robots: dict[int, int] = {}  # by request
        self._running: dict[int, Started] = {}

    def begin(self, part: LogPart, now_ns: int) -> None:
        """Take in what runs and waits where the log begins: it has started earlier."""
        self.from_ns = now_ns
        core = part.header.core()
        core.restore(part.state)
        units: dict[int, list[tuple[int, int]]] = {}
        for key, robot, _, _, _, stage, unit in core.live_requests():
            self._robots[key] = robot
            if unit >= 0:
                units.setdefault(unit, []).append((stage, key))
        for number, members in sorted(units.items()):
            keys = tuple(key for _, key in members)
            stage = Stage(members[0][0])
            self._start([Started(number=number, stage=stage, keys=keys)], now_ns - 1)

    def take(self, call: Call) -> None:
        """Take in a call."""
        match call.kind:
            case CallKind.SUBMIT:
                self._robots[call.told[_KEY]] = call.told[_ROBOT]
            case CallKind.DISPATCH:
                self._start(call.units, call.now_ns)
            case CallKind.COMPLETE:
                self._end(call, Change.ENDED)
            case CallKind.WITHDRAW:
                self._end(call, Change.FAILED)

    def _start(self, units: Iterable[Started], now_ns: int) -> None:
        for unit in units:
            self._running[unit.number] = unit
            row = (now_ns, unit.number, unit.stage, len(unit.keys), Change.STARTED)
            self.transitions.append(row)
            self.members += [(unit.number, key, self._robots[key]) for key in unit.keys]

    def _end(self, call: Call, change: Change) -> None:
        (number,) = call.told
        unit = self._running.pop(number, None)
        if unit is None:
            raise ConfigError(f'the log ends unit {number}, which it has not started')
        self.transitions.append((call.now_ns, number, unit.stage, len(unit.keys), change))
