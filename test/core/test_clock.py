# SPDX-License-Identifier: Apache-2.0
"""Clocks: the steady one and the simulated one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.clock import MonotonicClock, SimulatedClock


def test_steady_clock_never_runs_backwards() -> None:
    clock = MonotonicClock()
    readings = [clock.now_ns() for _ in range(1000)]
    assert readings == sorted(readings)
    assert all(type(reading) is int for reading in readings)


def test_simulated_clock_stands_still_until_it_is_moved() -> None:
    clock = SimulatedClock(5)
    assert [clock.now_ns() for _ in range(3)] == [5, 5, 5]
    clock.advance(0)
    assert clock.now_ns() == 5
    clock.advance(7)
    assert clock.now_ns() == 12


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10**18)))
def test_simulated_clock_adds_up_exactly(durations: list[int]) -> None:
    clock = SimulatedClock()
    for duration_ns in durations:
        clock.advance(duration_ns)
    assert clock.now_ns() == sum(durations)


def test_simulated_clock_refuses_to_run_backwards_and_says_by_how_much() -> None:
    clock = SimulatedClock(100)
    with pytest.raises(ValueError, match='cannot be moved by -1 ns: it only runs forward'):
        clock.advance(-1)
    assert clock.now_ns() == 100
