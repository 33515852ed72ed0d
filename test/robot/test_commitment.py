# SPDX-License-Identifier: Apache-2.0
"""How many rows a robot promises itself, from the response times of late."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.robot.commitment import WINDOW, CommitmentEstimator, misfit, rows_within

MS = 1_000_000
SPACING_NS = round(1e9 / 30)
LONG_NS = 60_000 * MS


def _estimator(margin_steps: int = 0, responses_ms: tuple[int, ...] = ()) -> CommitmentEstimator:
    """Return an estimator that starts at 6 rows and has seen a cold response of 700 ms."""
    estimator = CommitmentEstimator(SPACING_NS, 6, margin_steps)
    for response_ms in (700, *responses_ms):
        estimator.add(response_ms * MS)
    return estimator


@pytest.mark.parametrize(('margin_steps', 'expected'), [(0, 3), (1, 4)])
def test_one_slow_first_response_leaves_no_trace(margin_steps: int, expected: int) -> None:
    """RT-04: 700 ms once, then 100 ms × 100 at 30 Hz: d is 3, or 4 with the declared margin."""
    estimator = CommitmentEstimator(SPACING_NS, 6, margin_steps)
    found = []
    for response_ms in (700, *[100] * 100):
        found.append(estimator.steps(LONG_NS, None))
        estimator.add(response_ms * MS)
    assert found[:2] == [6, 6]  # nothing was measured yet
    assert found[20] == expected
    assert set(found[2:]) == {expected}


def test_later_spike_counts_for_its_window_and_no_longer() -> None:
    """RT-04: a single 700 ms leaves the estimate after 20 samples."""
    estimator = _estimator(0, (100,) * 30)
    estimator.add(700 * MS)
    found = []
    for _ in range(WINDOW + 1):
        found.append(estimator.steps(LONG_NS, None))
        estimator.add(100 * MS)
    assert WINDOW == 20
    assert found == [21] * 20 + [3]


@pytest.mark.parametrize('rate_hz', [10, 15, 20, 25, 30, 50, 60, 90, 100, 120, 240])
def test_whole_number_of_rows_is_not_rounded_up_by_dust(rate_hz: int) -> None:
    """RT-04: 0.1 s / (1/30 s) is 3.0000000000000004 in floats, and 3.00000003 in nanoseconds."""
    spacing_ns = round(1e9 / rate_hz)
    for rows in range(1, 1001):
        duration_ns = round(rows * 1e9 / rate_hz)
        assert rows_within(duration_ns, spacing_ns) == rows
        assert rows_within(duration_ns + 10_000, spacing_ns) == rows + 1


def test_no_time_is_no_row() -> None:
    assert rows_within(0, SPACING_NS) == 0


@pytest.mark.parametrize(
    ('budget_ms', 'max_steps', 'expected'),
    [
        (60_000, None, 21),
        (60_000, 8, 8),
        (60_000, 21, 21),
        (180, None, 6),
        (180, 4, 4),
        (180, 0, 0),
    ],
)
def test_commitment_stays_within_the_servers_limit_and_the_budget(
    budget_ms: int, max_steps: int | None, expected: int
) -> None:
    """An answer after its budget has failed anyway; 180 ms at 30 Hz are 5.4 rows."""
    assert _estimator(0, (700,)).steps(budget_ms * MS, max_steps) == expected


def test_commitment_is_at_least_one_row() -> None:
    estimator = CommitmentEstimator(SPACING_NS, 0, 0)
    assert estimator.steps(LONG_NS, None) == 1
    estimator.add(MS)
    estimator.add(0)
    assert estimator.steps(LONG_NS, None) == 1


def test_commitment_stays_within_the_bounds_of_the_operator() -> None:
    bounded = CommitmentEstimator(SPACING_NS, 6, 0, min_steps=3, max_steps=5)
    assert bounded.steps(LONG_NS, None) == 5
    for response_ms in (700, 50, 50):
        bounded.add(response_ms * MS)
    assert bounded.steps(LONG_NS, None) == 3
    assert bounded.steps(LONG_NS, 2) == 2  # the server honours no more
    assert bounded.steps(34 * MS, None) == 2  # an answer after its budget has failed anyway


def test_first_response_of_every_session_is_left_out() -> None:
    """A server that starts anew is cold again; what was measured before counts on."""
    estimator = _estimator(0, (100,) * 5)
    estimator.begin_session()
    estimator.add(900 * MS)
    assert estimator.steps(LONG_NS, None) == 3
    estimator.add(300 * MS)
    assert estimator.steps(LONG_NS, None) == 9


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10**10), min_size=2, max_size=60), st.integers(0, 3))
def test_commitment_covers_every_response_of_the_window(
    responses_ns: list[int], margin_steps: int
) -> None:
    """A robot that executes d rows has not run past them when the longest response comes."""
    estimator = CommitmentEstimator(SPACING_NS, 6, margin_steps)
    for response_ns in responses_ns:
        estimator.add(response_ns)
    covered_ns = (estimator.steps(LONG_NS, None) - margin_steps) * SPACING_NS
    for response_ns in responses_ns[1:][-WINDOW:]:
        assert covered_ns >= response_ns - 1_000


@pytest.mark.parametrize(
    ('settings_changed', 'horizon', 'least_steps'),
    [
        ({'commitment': 'fixed', 'commitment_steps': 7}, 50, 7),
        ({'commitment': 'fixed', 'commitment_steps': 4}, 9, 4),
        ({'min_commitment_steps': 7}, 50, 7),
        ({'commitment_steps': 7}, 6, 1),
        ({'execution_mode': 'async', 'commitment': 'fixed', 'commitment_steps': 7}, 5, 0),
    ],
)
def test_chunk_that_is_too_short_for_the_settings_is_told(
    settings_changed: dict, horizon: int, least_steps: int
) -> None:
    text = misfit(ExecutorConfig(**settings_changed), horizon)
    assert text.startswith(f'commitment d={least_steps}, period s=6, horizon H={horizon}: ')


@pytest.mark.parametrize(
    'settings_changed',
    [
        {'commitment_steps': 7},  # where a measured d starts says nothing of what it becomes
        {'commitment': 'fixed', 'commitment_steps': 6},
        {'execution_mode': 'async', 'commitment': 'fixed', 'commitment_steps': 7},
    ],
)
def test_chunk_that_is_long_enough_is_not_complained_of(settings_changed: dict) -> None:
    assert misfit(ExecutorConfig(**settings_changed), 12) == ''
