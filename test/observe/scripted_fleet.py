# SPDX-License-Identifier: Apache-2.0
"""A fleet that is served as written here: the same numbers at the same time, without a server."""

import math
from collections import Counter
from dataclasses import replace

from xinfer_ros.core.health import Level
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.timeline import LaneUnit, Timeline, Waiting

MS = 1_000_000
LEASE_S = 5.0
CYCLE_NS = 74 * MS
UNITS_MS = ((2, 11), (13, 29), (5, 61))  # start in the cycle and duration, by stage
BATCH = (2, 2, 4)
LATE_TEXT = (
    '38 % of the responses late: the budget of 90 ms is less than the 96 ms that half of them '
    'take; allow more, or serve fewer robots'
)
STARVED_TEXT = (
    'starving: 4.2 % of the control ticks without an action; network P50 is 61 ms, so more '
    'bandwidth or smaller pictures would help'
)


class ScriptedFleet:
    """
    Robots r0, r1, ... The fourth is late and the second starves, if so told.

    :param num_robots: how many
    :param troubled: whether some are late, starving and silent
    """

    def __init__(self, num_robots: int, *, troubled: bool = True) -> None:
        self.names = [f'r{number}' for number in range(num_robots)]
        self.troubled = troubled
        self.silent_since_ns: dict[str, int] = {}
        self.state = ServerPhase.READY
        self.level, self.text = Level.OK, 'READY'
        self.watched: list[bool] = []

    def watch(self, on: bool) -> None:
        """Keep what is told to the engine."""
        self.watched.append(on)

    def status(self, now_ns: int) -> FleetStatus:
        """Return how they are served."""
        robots = tuple(self._robot(name, now_ns) for name in self.names)
        rate = sum(robot.responses_hz for robot in robots)
        goodput = sum(robot.goodput_hz for robot in robots)
        swing = math.sin(now_ns / 23e9)
        return FleetStatus(
            epoch=1_789_000_000_123_456_789,
            state=self.state,
            level=self.level,
            text=self.text,
            model='tiny',
            scheduling_policy='foresight',
            requests=184_402,
            responses=184_377,
            responses_hz=rate,
            goodput_hz=goodput,
            attainment=goodput / rate if rate else math.nan,
            starved_share=0.0011 if self.troubled else 0.0,
            latency_p50_ns=round((88 + 3 * swing) * MS),
            latency_p99_ns=round((131 + 9 * swing) * MS),
            slots_used=min(len(robots), 9),
            num_slots=2 * len(robots),
            waiting=(1, 3, 2),
            occupancy=(0.31, 0.58 + 0.04 * swing, 0.83),
            protected_requests=2,
            prediction_error_ms=1.7,
            reasons=Counter({Reason.SUPERSEDED: 21, Reason.HUNG: 4}),
            robots=robots,
            max_robots=32,
        )

    def _robot(self, name: str, now_ns: int) -> RobotStatus:
        number = int(name[1:]) if name[1:].isdecimal() else 0
        swing = math.sin(now_ns / 7e9 + number)
        period_ns = 180 * MS
        asked_ns = (now_ns + number * 37 * MS) % period_ns
        robot = RobotStatus(
            robot_id=name,
            robot_namespace=f'/{name}',
            text='on time',
            silent_s=asked_ns / 1e9,
            requests=5400 + number,
            responses=5399 + number,
            responses_hz=5.55,
            goodput_hz=5.55,
            attainment=1.0,
            starved_share=0.0,
            budget_ns=(150, 200, 250)[number % 3] * MS,
            minimum_period_ns=period_ns,
            latency_p50_ns=round((86 + 5 * swing) * MS),
            latency_p99_ns=round((124 + 9 * swing) * MS),
            network_p50_ns=round((3.1 + 0.4 * swing) * MS),
            queued_steps=14 - 6 * asked_ns // period_ns,
            commitment_steps=5,
            in_flight=asked_ns < 90 * MS,
        )
        if self.troubled and number == 3:
            robot = replace(robot, level=Level.WARN, text=LATE_TEXT, attainment=0.62,
                            goodput_hz=3.44, budget_ns=90 * MS)  # fmt: skip
        if self.troubled and number == 1:
            robot = replace(robot, level=Level.ERROR, text=STARVED_TEXT, starved_share=0.042,
                            network_p50_ns=61 * MS, queued_steps=3)  # fmt: skip
        return self._silent(robot, now_ns)

    def _silent(self, robot: RobotStatus, now_ns: int) -> RobotStatus:
        since_ns = self.silent_since_ns.get(robot.robot_id)
        if since_ns is None or now_ns < since_ns:
            return robot
        seconds = (now_ns - since_ns) / 1e9
        lost = seconds > LEASE_S
        text = f'stale: silent for {seconds:.1f} s; does its executor run?'
        if lost:
            text = f'lost: silent for {seconds:.0f} s, its place is free; start it again'
        return replace(robot, level=Level.ERROR, text=text, silent_s=seconds, queued_steps=0,
                       responses_hz=0.0, goodput_hz=0.0, attainment=math.nan,
                       registered=not lost)  # fmt: skip

    def timeline(self, since_ns: int, now_ns: int) -> Timeline:
        """Return units in a cycle; each third cycle is for a protected request."""
        first, last = since_ns // CYCLE_NS - 1, now_ns // CYCLE_NS
        units = [self._unit(cycle, stage) for cycle in range(first, last + 1) for stage in Stage]
        shown = [
            replace(unit, ended_ns=None) if (unit.ended_ns or 0) > now_ns else unit
            for unit in units
            if unit.started_ns <= now_ns and (unit.ended_ns or 0) >= since_ns
        ]
        return Timeline(
            from_ns=since_ns, to_ns=now_ns, units=tuple(shown), waiting=self._waiting(now_ns)
        )

    def _unit(self, cycle: int, stage: Stage) -> LaneUnit:
        start_ms, duration_ms = UNITS_MS[stage]
        wobble = 1 + 0.15 * math.sin(1.7 * cycle + stage)
        started_ns = cycle * CYCLE_NS + start_ms * MS
        size = min(BATCH[stage], len(self.names))
        chosen = [(cycle * size + place) % max(1, len(self.names)) for place in range(size)]
        return LaneUnit(
            number=3 * cycle + stage,
            stage=stage,
            started_ns=started_ns,
            ended_ns=started_ns + round(duration_ms * wobble * MS),
            robots=tuple(self.names[place] for place in chosen),
            keys=tuple(cycle * size + place for place in range(size)),
            protected=(cycle - stage) % 3 == 0,
        )

    def _waiting(self, now_ns: int) -> tuple[Waiting, ...]:
        reasons = (
            'it would take 9.8 ms of the 6.1 ms of slack of request 5121',
            'the request foreseen at 90412.3 ms would need 51.0 ms, 4.4 ms more than its budget',
            'started now, 1.31 requests are predicted late, 0.24 if it waits',
        )
        return tuple(
            Waiting(
                robot=name,
                key=5130 + place,
                stage=Stage(place % 3),
                since_ns=now_ns - (8 + 5 * place) * MS,
                why=f'{now_ns / 1e6:.1f} ms: {Stage(place % 3).name} of request {5130 + place} '
                f'waits: {reasons[place % 3]}',
            )
            for place, name in enumerate(self.names[-3:])
        )
