# SPDX-License-Identifier: Apache-2.0
"""Ticks follow the time of the node; budgets and the watchdog follow the steady clock."""

import itertools

import pytest

from .bringup import CONTRACT, Bringup
from .graph import Graph
from .scripted_server import Listener, ScriptedServer
from .sim_clock import SimClock

MS = 1_000_000
NODE_S, STAMP_S = 2_221, 1_635_791_353


def _started(graph: Graph, clock: SimClock, robot: Listener) -> None:
    """Let simulated time run until the robot is commanded."""
    clock.wait_for(1)
    for _ in range(400):
        clock.run(10 * MS, 10 * MS, 0.01)
        if len(robot.commands) > 5:
            return
    raise AssertionError('the robot is not commanded')


def test_ticks_follow_simulated_time_through_rates_pauses_and_jumps(graph: Graph) -> None:
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    clock = SimClock(graph, NODE_S * 1_000 * MS)
    process = Bringup(graph).executor('use_sim_time:=true', 'response_budget_s:=0.5')
    graph.until(lambda: 'no time yet' in process.output or clock.wait_for(1) is None, 'it waits')
    graph.spin(0.5)
    assert server.requests == []  # no time, no observation
    _started(graph, clock, robot)
    assert all(request.stamp.sec in range(NODE_S, NODE_S + 30) for request in server.requests)

    def commands_within(duration_ms: int, step_ms: int, every_s: float) -> int:
        before = len(robot.commands)
        clock.run(duration_ms * MS, step_ms * MS, every_s)
        graph.spin(0.1)
        return len(robot.commands) - before

    assert commands_within(600, 10, 0.01) == pytest.approx(20, abs=2)  # as real time runs
    assert commands_within(600, 10, 0.004) == pytest.approx(20, abs=2)  # faster
    before = len(robot.commands)
    graph.spin(0.5)
    assert len(robot.commands) == before  # a pause
    clock.now_ns -= 1_000_000 * MS  # back, as when a simulation is reset
    assert commands_within(600, 10, 0.01) == pytest.approx(20, abs=2)
    clock.now_ns += 5_000_000 * MS  # and ahead: one command, time is not caught up with
    assert commands_within(600, 10, 0.01) == pytest.approx(20, abs=2)
    assert robot.report.budget_ns == 500 * MS
    assert robot.report.unanswered == 0
    assert process.process.poll() is None


def test_first_intervals_are_a_spacing_long(graph: Graph) -> None:
    """Also seen (positronic PR 443), on the simulated clock: a spacing ±10 %."""
    ScriptedServer(graph, contract=CONTRACT)
    robot, clock = Listener(graph), SimClock(graph, NODE_S * 1_000 * MS)
    Bringup(graph).executor('use_sim_time:=true')
    seen_ns: list[int] = []
    clock.wait_for(1)
    while len(seen_ns) < 6 and clock.now_ns < (NODE_S + 20) * 1_000 * MS:
        clock.run(3 * MS, 3 * MS, 0.02)
        if len(robot.commands) > len(seen_ns):
            seen_ns += [clock.now_ns] * (len(robot.commands) - len(seen_ns))
    intervals = [after - before for before, after in itertools.pairwise(seen_ns)]
    assert all(27 * MS <= interval <= 33 * MS for interval in intervals[:5]), intervals


@pytest.mark.parametrize(
    ('node_s', 'stamp_s'), [(NODE_S, STAMP_S), (STAMP_S, NODE_S)], ids=['sim, wall', 'reverse']
)
def test_watchdog_trips_by_arrival_whatever_the_stamps_say(
    graph: Graph, node_s: int, stamp_s: int
) -> None:
    """CQ-09: stamps of another clock than the node's, and chunks stop."""
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    bringup, clock = Bringup(graph), SimClock(graph, node_s * 1_000 * MS)
    bringup.stamp_s, server.motion = stamp_s, 0.001
    bringup.executor('use_sim_time:=true', 'chunk_timeout_s:=0.3')
    _started(graph, clock, robot)
    server.answers = False
    clock.run(1_000 * MS, 10 * MS, 0.01)
    assert 'chunk timeout' in robot.report.hold
    assert robot.report.queued_steps > 0  # rows were left, and yet it holds
    held = {tuple(command.points[0].positions) for command in robot.commands[-5:]}
    assert len(held) == 1
    server.answers = True
    steps = robot.report.executed_steps
    for _ in range(600):
        clock.run(10 * MS, 10 * MS, 0.01)
        if robot.report.executed_steps > steps + 10:
            return
    raise AssertionError('the robot does not go on when chunks come again')
