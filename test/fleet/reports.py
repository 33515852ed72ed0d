# SPDX-License-Identifier: Apache-2.0
"""Reports of robots for the tests of the fleet."""

from collections import Counter
from typing import Any

from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.fleet.verdict import FleetResult, fleet_result


def report(robot_id: str = 'r0', **changes: Any) -> RobotReport:
    """Return the report of a healthy robot after about ten seconds."""
    return RobotReport(
        **{
            'robot_id': robot_id,
            'phase': ExecutorPhase.RUNNING,
            'session': 9,
            'epoch': 1,
            'ticks': 300,
            'requests': 50,
            'chunks': 50,
            'on_time': 49,
            'latency_p50_ns': 60_000_000,
            'latency_p99_ns': 120_000_000,
            'reasons': Counter(),
            **changes,
        }
    )


def result(*after: RobotReport) -> FleetResult:
    """Return the result of robots that had seen nothing before."""
    before = {r.robot_id: RobotReport(robot_id=r.robot_id) for r in after}
    return fleet_result(before, {r.robot_id: r for r in after})
