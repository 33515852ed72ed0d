# SPDX-License-Identifier: Apache-2.0
"""The fleet's status to messages and back."""

from array import array
from collections import Counter
from typing import Any

from xinfer_ros.core.health import Level
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason
from xinfer_ros.msg import FleetStatus as FleetStatusMsg
from xinfer_ros.msg import RobotStatus as RobotStatusMsg
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus

_FLEET_FIELDS = (
    'epoch', 'model', 'scheduling_policy', 'window_s', 'requests', 'responses', 'responses_hz',
    'goodput_hz', 'attainment', 'starved_share', 'latency_p50_ns', 'latency_p99_ns', 'slots_used',
    'num_slots', 'protected_requests', 'prediction_error_ms',
)  # fmt: skip
_ROBOT_FIELDS = (
    'robot_id', 'robot_namespace', 'door', 'text', 'silent_s', 'requests', 'responses', 'refused',
    'responses_hz', 'goodput_hz', 'attainment', 'starved_share', 'budget_ns', 'minimum_period_ns',
    'latency_p50_ns', 'latency_p99_ns', 'network_p50_ns', 'queued_steps', 'commitment_steps',
    'registered',
)  # fmt: skip


def from_fleet_status(status: FleetStatus, stamp: Any) -> Any:
    """
    Return a fleet's status as a message.

    :param stamp: when it was made, server clock, ``builtin_interfaces/Time``
    """
    message = FleetStatusMsg(**{name: getattr(status, name) for name in _FLEET_FIELDS})
    message.stamp, message.state = stamp, int(status.state)
    message.waiting = array('I', status.waiting)
    message.occupancy = array('f', status.occupancy)
    message.reasons = [reason.name for reason in status.reasons]
    message.reason_counts = array('Q', status.reasons.values())
    message.robots = [_from_robot(robot) for robot in status.robots]
    return message


def _from_robot(robot: RobotStatus) -> Any:
    message = RobotStatusMsg(**{name: getattr(robot, name) for name in _ROBOT_FIELDS})
    message.level = int(robot.level)
    return message


def to_fleet_status(message: Any) -> FleetStatus:
    """Return a message as a fleet's status; what the message does not carry has its default."""
    counts = zip(message.reasons, message.reason_counts, strict=True)
    vit, prefill, action = (int(count) for count in message.waiting)
    shares = tuple(float(share) for share in message.occupancy)
    reasons: Counter[Reason] = Counter()
    for name, count in counts:
        reasons[Reason.__members__.get(name, Reason.UNKNOWN_REASON)] += count
    return FleetStatus(
        **{name: getattr(message, name) for name in _FLEET_FIELDS},
        state=ServerPhase(message.state),
        waiting=(vit, prefill, action),
        occupancy=(shares[0], shares[1], shares[2]),
        reasons=reasons,
        robots=tuple(_to_robot(robot) for robot in message.robots),
    )


def _to_robot(message: Any) -> RobotStatus:
    return RobotStatus(
        **{name: getattr(message, name) for name in _ROBOT_FIELDS}, level=Level(message.level)
    )
