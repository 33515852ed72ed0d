# SPDX-License-Identifier: Apache-2.0
"""When a robot with time to spare is asked back."""

from dataclasses import replace
from typing import Any

import pytest

from xinfer_ros.sched.reference.pacing import Pacing
from xinfer_ros.sched.reference.state import Robot, State
from xinfer_ros.sched.settings import ForesightSettings

from .driven_core import sharing_device


def _robot(budget: float, last_arrival: float = 0.0) -> Robot:
    return Robot(known=True, last_arrival=last_arrival, budget=budget, period=180.0)


def _pacing(*robots: Robot, per_ms: float, **changes: Any) -> Pacing:
    """Return the pacing of a fleet that may ask for so many responses per ms, at 50 ms."""
    device = sharing_device()
    settings = replace(
        ForesightSettings.of(device),
        pacing_rate_per_ms=per_ms,
        pacing_spread=0.0,
        pacing_window_ms=30.0,
        back_ms=7.0,
    )
    state = State(device, device.bound, settings)
    state.robots = list(robots)
    state.now = 50.0
    return Pacing(state, replace(settings, **changes))


def test_robot_is_left_to_itself_while_the_device_can_serve_all() -> None:
    assert _pacing(_robot(400.0), per_ms=1 / 179).next(0) == 0.0


def test_robot_with_time_to_spare_makes_room() -> None:
    assert _pacing(_robot(400.0), per_ms=1 / 300).next(0) == pytest.approx(300.0, abs=0.01)


def test_robot_is_never_asked_back_after_its_budget() -> None:
    assert _pacing(_robot(400.0), per_ms=1 / 900).next(0) == 400.0


def test_robot_without_time_to_spare_is_left_to_itself() -> None:
    assert _pacing(_robot(90.0), per_ms=1 / 900).next(0) == 0.0


def test_robots_with_time_to_spare_share_what_the_others_leave() -> None:
    """One per 180 ms is taken; 1 / 180 + 2 / T = 1 / 90 at T = 360."""
    fleet = (_robot(400.0), _robot(90.0), _robot(400.0))
    assert _pacing(*fleet, per_ms=1 / 90).next(0) == pytest.approx(360.0, abs=0.01)


def test_nobody_is_paced_if_pacing_is_off() -> None:
    assert _pacing(_robot(400.0), per_ms=1 / 900, pacing=False).next(0) == 0.0


def test_quietest_time_around_the_period_is_taken() -> None:
    """Between 280 and 320 in steps of 10; another robot comes at 285: 320 is 35 away from it."""
    fleet = (_robot(400.0), _robot(90.0, last_arrival=105.0))
    pacing = _pacing(*fleet, per_ms=1 / 300 + 1 / 180, pacing_spread=20 / 300, pacing_step_ms=10.0)
    assert pacing.next(0) == pytest.approx(320.0, abs=0.02)


def test_robot_that_is_long_overdue_counts_no_more() -> None:
    gone = _robot(400.0, last_arrival=-2000.0)
    assert _pacing(_robot(400.0), gone, per_ms=1 / 179).next(0) == 0.0


def test_slower_device_serves_fewer() -> None:
    device = sharing_device()
    settings = replace(ForesightSettings.of(device), pacing_rate_per_ms=1 / 200, pacing_spread=0.0)
    state = State(device, device.bound, settings)
    state.robots = [_robot(400.0)]
    state.predictor.correction[:] = [1.5, 1.5, 1.5]
    assert Pacing(state, settings).next(0) == pytest.approx(300.0, abs=0.01)
