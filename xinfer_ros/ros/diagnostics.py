# SPDX-License-Identifier: Apache-2.0
"""What the nodes say on /diagnostics."""

from collections.abc import Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.status import ServerPhase, ServerStatus
from xinfer_ros.errors import Reason
from xinfer_ros.ros.qos import Mismatch

ERROR, OK, WARN = DiagnosticStatus.ERROR, DiagnosticStatus.OK, DiagnosticStatus.WARN


def _status(
    level: bytes, name: str, text: str, values: Mapping[str, object] | None = None
) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=str(value)) for key, value in (values or {}).items()]
    return DiagnosticStatus(level=level, name=name, message=text, values=pairs)


def _array(node: Any, statuses: list[DiagnosticStatus]) -> DiagnosticArray:
    array = DiagnosticArray(status=statuses)
    array.header.stamp = node.get_clock().now().to_msg()
    return array


def mismatch_statuses(name: str, mismatched: Sequence[Mismatch]) -> list[DiagnosticStatus]:
    """Return an ERROR for each publisher whose quality of service can't match ours."""
    return [
        _status(
            ERROR,
            f'{name}: quality of service of {m.topic}',
            f'{m.peer} publishes {m.topic} with an incompatible quality of service: {m.why}',
            {'topic': m.topic, 'peer': m.peer, 'policy': m.why},
        )
        for m in mismatched
    ]


def server_diagnostics(
    node: Any,
    status: ServerStatus,
    answered: Mapping[Reason, int],
    robots: Sequence[Robot],
    mismatched: Sequence[Mismatch],
) -> DiagnosticArray:
    """
    Return the server's phase, counters, refused duplicates and unmatched publishers.

    :param answered: answers by reason
    :param robots: the registered robots
    """
    name = node.get_fully_qualified_name()
    levels = {ServerPhase.READY: OK, ServerPhase.ERROR: ERROR}
    level = levels.get(status.phase, WARN)
    values = {
        'epoch': status.epoch,
        'model': status.model,
        'robots': status.num_robots,
        **{
            f'{stage.name.lower()}_time_over_calibration': f'{ratio:.3f}'
            for stage, ratio in zip(Stage, status.correction, strict=True)
        },
        **{reason.name: count for reason, count in answered.items()},
    }
    statuses = [_status(level, f'{name}: server', status.phase.name, values)]
    for robot in robots:
        if robot.duplicates_refused:
            robot_id = robot.registration.robot_id
            text = f'DUPLICATE_ID: {robot.duplicates_refused} others as {robot_id} were refused'
            statuses.append(_status(WARN, f'{name}: {robot_id}', text))
    return _array(node, statuses + mismatch_statuses(name, mismatched))


def executor_diagnostics(
    node: Any, report: RobotReport, notice: str, mismatched: Sequence[Mismatch]
) -> DiagnosticArray:
    """
    Return the state of an executor.

    :param notice: why the robot can't ask at present; empty if it can
    """
    name = node.get_fully_qualified_name()
    level = OK if report.phase is ExecutorPhase.RUNNING and not notice else WARN
    values = {
        'requests': report.requests,
        'chunks': report.chunks,
        'on_time': report.on_time,
        'starved_ticks': report.starved_ticks,
        'unanswered': report.unanswered,
        **{reason.name: count for reason, count in report.reasons.items()},
    }
    status = _status(level, f'{name}: executor', notice or report.phase.name, values)
    return _array(node, [status, *mismatch_statuses(name, mismatched)])
