# SPDX-License-Identifier: Apache-2.0
"""Settings as ROS parameters: declared from config/, with description and bounds."""

from dataclasses import fields
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.parameter import Parameter

from xinfer_ros.setting import allowed

_TYPES = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
    tuple: Parameter.Type.STRING_ARRAY,
}


def steady_clock() -> Clock:
    """Return the clock for timers that must go on whatever the simulated or wall clock does."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def as_overrides(settings: Any) -> list[Parameter]:
    """Return settings in the types that they are declared with, for the constructor of a node."""
    return [
        Parameter(f.name, _TYPES[type(f.default)], _plain(getattr(settings, f.name)))
        for f in fields(settings)
    ]


def declare(node: Any, settings: Any) -> None:
    """Declare every setting, read-only: it is read once, at the start of the node."""
    for f in fields(settings):
        descriptor = ParameterDescriptor(
            description=f'{f.metadata["doc"]} (allowed: {allowed(f)})', read_only=True
        )
        low, high = f.metadata['low'], f.metadata['high']
        if low is not None and type(f.default) is int:
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
        elif low is not None:
            bounds = FloatingPointRange(from_value=float(low), to_value=float(high))
            descriptor.floating_point_range = [bounds]
        node.declare_parameter(f.name, _plain(getattr(settings, f.name)), descriptor)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
