# SPDX-License-Identifier: Apache-2.0
"""The metrics that have a label for each robot; of registered robots alone."""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus

_GAUGES: tuple[tuple[str, str, Callable[[RobotStatus], float]], ...] = (
    ('level', '0 well, 1 a warning, 2 an error', lambda r: r.level),
    ('attainment_ratio', 'share of its answers within their budget', lambda r: r.attainment),
    ('goodput_per_second', 'its answers within their budget', lambda r: r.goodput_hz),
    ('starved_ratio', 'share of its control ticks without an action', lambda r: r.starved_share),
    ('network_seconds', 'median time on the network', lambda r: r.network_p50_ns / 1e9),
    ('budget_seconds', 'response budget of its latest request', lambda r: r.budget_ns / 1e9),
    ('queued_steps', 'rows left in its action queue, foreseen', lambda r: r.queued_steps),
    ('silent_seconds', 'time since its last sign of life', lambda r: r.silent_s),
)


def robot_metrics(status: FleetStatus) -> Iterator[Metric]:
    """Yield gauges of every registered robot; the label is gone when its lease is over."""
    robots = [robot for robot in status.robots if robot.registered]
    for name, about, value in _GAUGES:
        family = GaugeMetricFamily(f'xinfer_robot_{name}', about, labels=('robot',))
        for robot in robots:
            family.add_metric((robot.robot_id,), value(robot))
        yield family
    latency = GaugeMetricFamily(
        'xinfer_robot_latency_seconds', 'arrival to publication', labels=('robot', 'quantile')
    )
    for robot in robots:
        latency.add_metric((robot.robot_id, '0.5'), robot.latency_p50_ns / 1e9)
        latency.add_metric((robot.robot_id, '0.99'), robot.latency_p99_ns / 1e9)
    yield latency
