# SPDX-License-Identifier: Apache-2.0
"""Latency windows and what a robot reports."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.metrics import ClockSkew, ExecutorPhase, LatencyWindow, RobotReport
from xinfer_ros.errors import Reason

EXECUTOR_STATE = Path(__file__).parents[2] / 'msg' / 'ExecutorState.msg'


def test_empty_window_reports_zero() -> None:
    assert LatencyWindow().percentile_ns(50) == 0
    assert LatencyWindow().percentile_ns(99) == 0


@settings(deadline=None, derandomize=True)
@given(
    st.integers(1, 20),
    st.lists(st.integers(0, 10**11), min_size=1, max_size=60),
    st.floats(0, 100),
)
def test_percentiles_are_those_of_the_last_values(
    size: int, values: list[int], share: float
) -> None:
    window = LatencyWindow(size)
    for value in values:
        window.add(value)
    kept = values[-size:]
    assert window.percentile_ns(share) == int(np.percentile(kept, share))
    assert min(kept) <= window.percentile_ns(share) <= max(kept)


def test_slow_first_answer_leaves_the_window_after_its_size() -> None:
    """RT-04: one slow first inference does not count for the whole episode."""
    window = LatencyWindow(20)
    window.add(700_000_000)
    for _ in range(19):
        window.add(100_000_000)
    assert window.percentile_ns(100) == 700_000_000
    window.add(100_000_000)
    assert window.percentile_ns(100) == 100_000_000


def test_window_keeps_256_values_unless_told_otherwise() -> None:
    """The number that msg/ExecutorState.msg promises."""
    window = LatencyWindow()
    for value in range(300):
        window.add(value)
    assert window.percentile_ns(0) == 300 - 256
    assert 'median of the last 256' in EXECUTOR_STATE.read_text()


def test_report_has_the_fields_of_the_message() -> None:
    lines = EXECUTOR_STATE.read_text().splitlines()
    fields = [m[1] for line in lines if (m := re.match(r'[a-z0-9\[\]]+ ([a-z0-9_]+)\s', line))]
    ours = {field.name for field in dataclasses.fields(RobotReport)}
    assert set(fields) - {'state', 'reason_counts'} == ours - {'phase'}


def test_phases_are_the_constants_of_the_message() -> None:
    constants = re.findall(r'^uint8 ([A-Z]+)=(\d+)', EXECUTOR_STATE.read_text(), re.MULTILINE)
    assert {name: int(value) for name, value in constants} == {
        phase.name: int(phase) for phase in ExecutorPhase
    }


def test_reports_do_not_share_their_counters() -> None:
    first, second = RobotReport(), RobotReport()
    first.reasons[Reason.EXPIRED] += 1
    assert not second.reasons


@pytest.mark.parametrize('share', [50, 99])
def test_percentile_is_a_whole_number_of_nanoseconds(share: float) -> None:
    window = LatencyWindow()
    window.add(1)
    window.add(2)
    assert type(window.percentile_ns(share)) is int


def test_skew_of_a_clock_is_what_the_quickest_message_of_late_shows() -> None:
    """TR-09: the time on the way only ever takes from the lead of a clock."""
    skew = ClockSkew(size=3)
    assert skew.skew_ns is None
    for lead_ms, way_ms in ((300_000, 40), (300_000, 3), (300_000, 90)):
        skew.add(lead_ms * 1_000_000, way_ms * 1_000_000)
    assert skew.skew_ns == 299_997_000_000
    for _ in range(3):
        skew.add(1_000_000_000, 302_000_000_000)  # it was set back by 600 s and a bit
    assert skew.skew_ns == -301_000_000_000
