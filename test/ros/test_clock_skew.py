# SPDX-License-Identifier: Apache-2.0
"""Robots whose clocks are wrong are served like all others; the server shows how wrong."""

from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray

from xinfer_ros.errors import Reason

from .graph import Graph
from .scripted_robot import ScriptedRobot


def _stamp(robot: ScriptedRobot, message: Any, offset_s: float) -> Any:
    now_ns = robot.now_ns() + round(offset_s * 1e9)
    message.stamp.sec, message.stamp.nanosec = divmod(now_ns, 1_000_000_000)
    return message


def test_clock_of_a_robot_decides_nothing_and_is_shown(graph: Graph) -> None:
    """TR-09: clocks off by ±300 s and a step of 1 s in mid-episode."""
    shown: dict[str, float] = {}

    def on_diagnostics(message: Any) -> None:
        for status in message.status:
            for pair in status.values:
                if pair.key == 'clock_skew_s' and pair.value != 'unknown':
                    shown[status.name.split()[-1]] = float(pair.value)

    graph.node.create_subscription(DiagnosticArray, '/diagnostics', on_diagnostics, 100)
    graph.server('-p', 'lease_s:=10.0')
    robots = {}
    for name, offset_s in (('right', 0.0), ('ahead', 300.0), ('behind', -300.0), ('steps', 0.0)):
        robots[name] = ScriptedRobot(graph, name)
        robots[name].register()
        for request in range(12):
            step_s = 1.0 if name == 'steps' and request >= 6 else 0.0
            message = _stamp(robots[name], robots[name].observation(), offset_s + step_s)
            answer = robots[name].answer_to(robots[name].send(message))
            assert answer.reason == Reason.OK, (name, answer.detail)
            times = (answer.decode_ns, answer.queue_ns, answer.server_ns)
            assert all(time_ns >= 0 for time_ns in times)
            assert answer.server_ns < message.budget_ns
    graph.until(lambda: len(shown) == 4, 'every clock is shown', 5.0)
    graph.spin(1.2)
    assert shown['ahead'] == pytest.approx(300.0, abs=0.05)
    assert shown['behind'] == pytest.approx(-300.0, abs=0.05)
    assert shown['right'] == pytest.approx(0.0, abs=0.05)
    assert shown['steps'] == pytest.approx(1.0, abs=0.05)


def test_observation_without_a_time_is_refused(graph: Graph) -> None:
    """TR-09: a stamp of 0 says that the robot has no time yet."""
    graph.server('-p', 'lease_s:=10.0')
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    unstamped = robot.observation()
    unstamped.stamp.sec = unstamped.stamp.nanosec = 0
    answer = robot.answer_to(robot.send(unstamped))
    assert answer.reason == Reason.UNSTAMPED
    assert 'use_sim_time' in answer.detail
    assert robot.ask().reason == Reason.OK
