# SPDX-License-Identifier: Apache-2.0
"""The status of a fleet from what is known of its robots, the server and the engines."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.core.metrics import percentile_ns
from xinfer_ros.engine.status import ServerStatus
from xinfer_ros.errors import Reason
from xinfer_ros.observe.engine_totals import EngineFigures
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.levels import ServerFacts, judge_server
from xinfer_ros.observe.robot_window import RobotFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFacts:
    """
    What is known at a moment.

    :param scheduling_policy: its name
    :param window_s: what rates and shares are taken over [s]
    :param server: what it says of itself
    :param engines: what they have counted
    :param requests: observations since the start
    :param answers: answers since the start, by reason
    :param robots: those that are shown
    :param figures: the windows of the robots, in the same order
    """

    scheduling_policy: str
    window_s: float
    server: ServerStatus
    engines: EngineFigures
    requests: int
    answers: Counter[Reason]
    robots: Sequence[RobotStatus]
    figures: Sequence[RobotFigures]


def summarise(facts: FleetFacts) -> FleetStatus:
    """Return the status of the fleet."""
    server, engines, robots = facts.server, facts.engines, facts.robots
    served = [given for held in facts.figures for given in held.served]
    latencies_ns = [given.times.server_ns for given in served]
    starved_ticks = sum(held.starved_ticks for held in facts.figures)
    verdict = judge_server(_server_facts(facts))
    return FleetStatus(
        epoch=server.epoch,
        state=server.phase,
        model=server.model,
        scheduling_policy=facts.scheduling_policy,
        window_s=facts.window_s,
        requests=facts.requests,
        responses=facts.answers[Reason.OK],
        responses_hz=sum(robot.responses_hz for robot in robots),
        goodput_hz=sum(robot.goodput_hz for robot in robots),
        attainment=_share(sum(given.on_time for given in served), len(served)),
        starved_share=_share(starved_ticks, sum(held.ticks for held in facts.figures)),
        latency_p50_ns=percentile_ns(latencies_ns, 50),
        latency_p99_ns=percentile_ns(latencies_ns, 99),
        slots_used=server.slots_used,
        num_slots=server.num_slots,
        waiting=engines.waiting,
        occupancy=engines.occupancy,
        protected_requests=engines.protected,
        prediction_error_ms=engines.prediction_error_ms,
        reasons=Counter({r: n for r, n in facts.answers.items() if r is not Reason.OK}),
        robots=tuple(sorted(robots, key=lambda robot: robot.robot_id)),
        max_robots=server.max_robots,
        level=verdict.level,
        text=verdict.text,
        correction=server.correction,
        mirror_error=server.mirror_error,
    )


def _server_facts(facts: FleetFacts) -> ServerFacts:
    refusals: Counter[Reason] = Counter()
    for held in facts.figures:
        refusals.update(held.refusals)
    return ServerFacts(
        phase=facts.server.phase,
        ended_ns=facts.engines.ended_ns,
        slow=max(facts.server.correction),
        refusals=refusals,
        served=sum(bool(held.served) for held in facts.figures),
        robots=sum(robot.registered for robot in facts.robots),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
