# SPDX-License-Identifier: Apache-2.0
"""Robots in closed loop on a real engine process."""

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.closed_loop import ClosedLoop, Window
from xinfer_ros.errors import ModelError


def test_every_robot_is_answered_and_asks_again() -> None:
    loop = ClosedLoop(ServerConfig(model='echo'), 3, MonotonicClock())
    try:
        window = loop.run(0.3)
        again = loop.run(0.1)
    finally:
        loop.close()
    assert len(window.latency_ns) > 3
    assert min(window.latency_ns) > 0
    assert window.seconds >= 0.3
    assert len(again.latency_ns) >= 3


def test_rate_of_a_window_is_of_its_whole_time() -> None:
    assert Window(seconds=2.0, latency_ns=(1, 2, 3)).per_s == 1.5


def test_engine_that_does_not_start_is_told() -> None:
    config = ServerConfig(model='no_such_model', calibration='echo')
    with pytest.raises(ModelError, match='the engine refuses the settings'):
        ClosedLoop(config, 1, MonotonicClock())
