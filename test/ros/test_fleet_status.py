# SPDX-License-Identifier: Apache-2.0
"""What a server says of its fleet, over a real graph."""

import os
import signal
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from xinfer_ros.errors import Reason
from xinfer_ros.msg import FleetStatus, RobotStatus, ServerState
from xinfer_ros.ros import qos

from .graph import Graph
from .scripted_robot import ScriptedRobot

UPLINK_S = 0.3


class Operator:
    """Hears everything that the server says of its fleet."""

    def __init__(self, graph: Graph) -> None:
        self.statuses: list[Any] = []
        self.said: dict[str, DiagnosticStatus] = {}
        node = graph.node
        node.create_subscription(FleetStatus, '/fleet/fleet_status', self.statuses.append, 10)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def _on_diagnostics(self, message: Any) -> None:
        self.said.update({status.name.split()[-1]: status for status in message.status})

    def level(self, name: str) -> bytes | None:
        """Return the newest level of something in the diagnostics, None if there is none."""
        return self.said[name].level if name in self.said else None

    def robot(self, robot_id: str) -> Any:
        """Return the newest status of a robot, None if there is none."""
        robots = self.statuses[-1].robots if self.statuses else []
        return next((robot for robot in robots if robot.robot_id == robot_id), None)


def _answered(robot: ScriptedRobot, graph: Graph, uplink_s: float, **told: Any) -> tuple[int, Any]:
    """Ask over an uplink of this delay; return the round trip by the robot's clock [ns]."""
    message = robot.observation(**told)
    sent_s = graph.now_s()
    graph.spin(uplink_s)
    answer = robot.answer_to(robot.send(message))
    assert answer.reason == Reason.OK
    return round((graph.now_s() - sent_s) * 1e9), answer


def test_operator_sees_who_is_served_how(graph: Graph) -> None:
    """OB-02 over ROS: 300 ms of uplink are network, and the server's own time is its own."""
    operator = Operator(graph)
    graph.server('-p', 'lease_s:=5.0')
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    told: dict[str, int] = {'ticks': 0, 'starved_ticks': 0}
    server_ns = []
    for _ in range(4):
        round_trip_ns, answer = _answered(robot, graph, UPLINK_S, **told)
        server_ns.append(answer.server_ns)
        told = {
            'ticks': told['ticks'] + 20,
            'starved_ticks': told['starved_ticks'] + 5,
            'answered_request_id': answer.request_id,
            'round_trip_ns': round_trip_ns,
        }
    graph.until(lambda: (s := operator.robot('r0')) and s.responses == 4, 'all four are counted')
    seen = operator.robot('r0')
    assert seen.network_p50_ns >= UPLINK_S * 1e9
    assert seen.latency_p99_ns <= max(server_ns)  # what was added is in no part of the server
    assert seen.starved_share == pytest.approx(0.25)
    assert (seen.level, seen.attainment, seen.door) == (RobotStatus.ERROR, 1.0, 'ros')
    assert seen.text.startswith('starving: 25 %')
    assert 'the network' in seen.text
    fleet = operator.statuses[-1]
    assert (fleet.requests, fleet.responses, fleet.model) == (4, 4, 'echo')
    graph.until(lambda: operator.said['r0'].message == seen.text, 'diagnostics say the same')
    assert operator.said['r0'].level == DiagnosticStatus.ERROR
    graph.until(lambda: operator.robot('r0').text.startswith('stale'), 'its silence is told')
    graph.until(lambda: operator.robot('r0').text.startswith('lost'), 'its end is told')


def test_an_engine_that_dies_is_told(graph: Graph) -> None:
    """The server is WARN for a window, though the next one is warm before somebody looks."""
    states: list[Any] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    operator = Operator(graph)
    graph.server('-p', 'spare_engine:=false', '-p', 'status_window_s:=3.0')
    graph.until(lambda: states and states[-1].engine_pid, 'the engine is known')
    epoch = states[-1].epoch
    graph.until(lambda: operator.level('server') == DiagnosticStatus.OK, 'it serves')
    os.kill(states[-1].engine_pid, signal.SIGKILL)
    graph.until(lambda: operator.level('server') == DiagnosticStatus.WARN, 'it is told')
    graph.until(lambda: states[-1].epoch > epoch and states[-1].state == 1, 'another one starts')
    graph.until(lambda: operator.statuses[-1].epoch > epoch, 'the status tells the epoch')
    graph.until(lambda: operator.level('server') == DiagnosticStatus.OK, 'all is well')
