# SPDX-License-Identifier: Apache-2.0
"""What the live page is told: status, history and timeline of the fleet as JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from xinfer_ros.core.stage import Stage
from xinfer_ros.observe.fleet_history import HistoryPoint
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.timeline import Timeline

STAGES = tuple('ViT' if stage is Stage.VIT else stage.name.capitalize() for stage in Stage)
_OF_A_ROBOT = (
    'robot_id', 'robot_namespace', 'door', 'text', 'silent_s', 'requests', 'responses', 'refused',
    'responses_hz', 'goodput_hz', 'attainment', 'starved_share', 'queued_steps',
    'commitment_steps', 'in_flight', 'registered',
)  # fmt: skip
_OF_THE_FLEET = (
    'model', 'scheduling_policy', 'window_s', 'requests', 'responses', 'responses_hz',
    'goodput_hz', 'attainment', 'starved_share', 'slots_used', 'num_slots', 'waiting',
    'occupancy', 'protected_requests', 'prediction_error_ms', 'max_robots', 'text',
)  # fmt: skip
_TIMES = ('budget', 'minimum_period', 'latency_p50', 'latency_p99', 'network_p50')


def page_data(
    now_ns: int,
    status: FleetStatus,
    timeline: Timeline,
    history: Sequence[HistoryPoint] = (),
) -> dict[str, Any]:
    """
    Return everything that the page shows; durations in ms, numbers that are none as None.

    :param now_ns: server's monotonic clock [ns]
    :param history: of the fleet, for a page that has just been opened
    """
    fleet = {name: _plain(getattr(status, name)) for name in _OF_THE_FLEET}
    fleet |= {
        'epoch': str(status.epoch),  # larger than what a number of JavaScript holds exactly
        'state': status.state.name,
        'level': status.level.name,
        'latency_p50_ms': _ms(status.latency_p50_ns),
        'latency_p99_ms': _ms(status.latency_p99_ns),
        'reasons': {reason.name: count for reason, count in status.reasons.most_common()},
    }
    return {
        'now_ms': _ms(now_ns),
        'stages': STAGES,
        'fleet': fleet,
        'robots': [_robot(robot) for robot in status.robots],
        'timeline': _timeline(timeline, now_ns),
        'history': [_plain(asdict(point)) for point in history],
    }


def as_json(data: object) -> bytes:
    """Return JSON in which no NaN is left."""
    return json.dumps(data, separators=(',', ':'), allow_nan=False).encode()


def _robot(robot: RobotStatus) -> dict[str, Any]:
    found = {name: _plain(getattr(robot, name)) for name in _OF_A_ROBOT}
    found |= {f'{name}_ms': _ms(getattr(robot, f'{name}_ns')) for name in _TIMES}
    return found | {'level': robot.level.name}


def _timeline(timeline: Timeline, now_ns: int) -> dict[str, Any]:
    """Return units as lists: stage, number, start, end, protected, places in names, requests."""
    names = sorted({robot for unit in timeline.units for robot in unit.robots})
    places = {name: place for place, name in enumerate(names)}
    return {
        'from_ms': _ms(timeline.from_ns),
        'to_ms': _ms(timeline.to_ns),
        'names': names,
        'units': [
            [
                int(unit.stage),
                unit.number,
                _ms(unit.started_ns),
                None if unit.ended_ns is None else _ms(unit.ended_ns),
                int(unit.protected),
                [places[robot] for robot in unit.robots],
                unit.keys,
            ]
            for unit in timeline.units
        ],
        'waiting': [
            {
                'robot': waiting.robot,
                'key': waiting.key,
                'stage': int(waiting.stage),
                'since_ms': _ms(now_ns - waiting.since_ns),
                'why': waiting.why,
            }
            for waiting in timeline.waiting
        ],
    }


def _ms(duration_ns: int) -> float:
    return round(duration_ns / 1e6, 2)


def _plain(value: Any) -> Any:
    """Return a value that JSON knows: short, and None for what is no number."""
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value
