# SPDX-License-Identifier: Apache-2.0
"""What the nodes say on /diagnostics."""

from collections.abc import Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.core.stage import Stage
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.ros.qos import Mismatch

ERROR, OK, WARN = DiagnosticStatus.ERROR, DiagnosticStatus.OK, DiagnosticStatus.WARN
LEVELS = {Level.OK: OK, Level.WARN: WARN, Level.ERROR: ERROR}
_COUNTERS = (
    'requests', 'chunks', 'on_time', 'ticks', 'starved_ticks', 'unanswered', 'trigger_misses',
    'overruns', 'skipped_steps', 'superseded',
)  # fmt: skip


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
    node: Any, status: FleetStatus, mismatched: Sequence[Mismatch]
) -> DiagnosticArray:
    """
    Return how the server and each of its robots is, and unmatched publishers.

    :param mismatched: publishers that can never reach the server
    """
    name = node.get_fully_qualified_name()
    values = {
        'epoch': status.epoch,
        'model': status.model,
        'robots': sum(robot.registered for robot in status.robots),
        'attainment': f'{status.attainment:.3f}',
        'goodput_hz': f'{status.goodput_hz:.1f}',
        'slots': f'{status.slots_used} of {status.num_slots}',
        **{
            f'{stage.name.lower()}_time_over_calibration': f'{ratio:.3f}'
            for stage, ratio in zip(Stage, status.correction, strict=True)
        },
        'mirror_error_steps': f'{status.mirror_error:.2f}',
        'prediction_error_ms': f'{status.prediction_error_ms:.2f}',
        **{reason.name: count for reason, count in status.reasons.items()},
    }
    statuses = [_status(LEVELS[status.level], f'{name}: server', status.text, values)]
    statuses += [_robot_status(name, robot) for robot in status.robots]
    return _array(node, statuses + mismatch_statuses(name, mismatched))


def _robot_status(name: str, robot: RobotStatus) -> DiagnosticStatus:
    """Return how a robot is; its clock is shown, and nothing depends on it."""
    skew_ns = robot.clock_skew_ns
    values = {
        'door': robot.door,
        'attainment': f'{robot.attainment:.3f}',
        'goodput_hz': f'{robot.goodput_hz:.2f}',
        'starved_share': f'{robot.starved_share:.4f}',
        'latency_p99_ms': f'{robot.latency_p99_ns / 1e6:.1f}',
        'network_p50_ms': f'{robot.network_p50_ns / 1e6:.1f}',
        'budget_ms': f'{robot.budget_ns / 1e6:g}',
        'silent_s': f'{robot.silent_s:.1f}',
        'refused': robot.refused,
        'clock_skew_s': 'unknown' if skew_ns is None else f'{skew_ns / 1e9:.3f}',
    }
    return _status(LEVELS[robot.level], f'{name}: {robot.robot_id}', robot.text, values)


def executor_diagnostics(
    node: Any,
    report: RobotReport,
    verdict: Verdict,
    stalls: int,
    mismatched: Sequence[Mismatch],
) -> DiagnosticArray:
    """
    Return the state of an executor.

    :param verdict: how it is, in one line
    :param stalls: times that its control thread stalled
    """
    name = node.get_fully_qualified_name()
    counters = {key: getattr(report, key) for key in _COUNTERS}
    values = {
        'phase': report.phase.name,
        'hold': report.hold,
        'brain': report.brain,
        'budget_ms': f'{report.budget_ns / 1e6:g}',
        'budget_reason': report.budget_reason,
        'network_p50_ms': f'{report.network_p50_ns / 1e6:.1f}',
        'motion': f'{report.motion:.4g}',
        **counters,
        'stalls': stalls,
        **{reason.name: count for reason, count in report.reasons.items()},
    }
    status = _status(LEVELS[verdict.level], f'{name}: executor', verdict.text, values)
    return _array(node, [status, *mismatch_statuses(name, mismatched)])


def brain_diagnostics(node: Any, status: Mapping[str, Any]) -> DiagnosticArray:
    """
    Return how each LLM server and its episodes fare.

    :param status: as in ``/status.json`` of the gateway
    """
    name = node.get_fully_qualified_name()
    statuses = []
    for upstream in status['upstreams']:
        warnings = upstream['warnings']
        if upstream['state'] != 'UP':
            level, text = ERROR, f'BRAIN_UNAVAILABLE: {upstream["detail"]}'
        else:
            level, text = (WARN, warnings[0]) if warnings else (OK, 'gets on')
        kept = ('controller', 'admitted', 'parked', 'queued', 'held_tokens', 'estimate_tokens')
        values = {key: upstream[key] for key in (*kept, 'hit_ratio', 'metrics')}
        statuses.append(_status(level, f'{name}: {upstream["name"]}', text, values))
    return _array(node, statuses)
