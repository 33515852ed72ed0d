# SPDX-License-Identifier: Apache-2.0
"""From gripper switches to response budgets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.episodes.budgets import BudgetRule, budget_sequence, tight_intervals
from xinfer_ros.episodes.episode import Episode, Series
from xinfer_ros.errors import ConfigError

from .samples import shipped

RULE = BudgetRule()
SECOND = 10**9


def _episode(switches_s: list[float], length_s: float) -> Episode:
    """Return an episode whose gripper is told to switch at some times."""
    times_ns = np.arange(0, round(length_s * SECOND) + 1, 10_000_000)
    values = np.zeros(len(times_ns))
    for switch_s in switches_s:
        later = times_ns >= round(switch_s * SECOND)
        values[later] = 1.0 - values[later]
    commands = Series(times_ns=times_ns, values=values.reshape(-1, 1))
    return Episode(name='it', joints=('gripper',), commands=commands)


def _intervals_s(switches_s: list[float], length_s: float) -> list[tuple[float, float]]:
    found = tight_intervals(
        [round(s * SECOND) for s in switches_s], round(length_s * SECOND), RULE
    )
    return [(one.start_ns / SECOND, one.end_ns / SECOND) for one in found]


def test_intervals_reach_from_a_second_before_to_half_a_second_after() -> None:
    assert _intervals_s([3.0], 10.0) == [(2.0, 3.5)]


def test_overlapping_intervals_become_one() -> None:
    assert _intervals_s([3.0, 4.0, 7.0], 10.0) == [(2.0, 4.5), (6.0, 7.5)]
    assert _intervals_s([3.0, 4.5], 10.0) == [(2.0, 5.0)]


def test_intervals_end_with_the_episode() -> None:
    assert _intervals_s([0.2, 9.9], 10.0) == [(0.0, 0.7), (8.9, 10.0)]


def test_durations_become_responses() -> None:
    """2.0 s, 1.5 s and 5.5 s at 180 ms: 11, 8 and 31 responses."""
    sequence = budget_sequence(_episode([3.0], 9.0), RULE)
    phases = [(phase.budget_ms, phase.responses) for phase in sequence.phases]
    assert phases == [(400.0, 11), (90.0, 8), (400.0, 31)]
    assert sequence.coverage == pytest.approx(1.5 / 9.0)
    assert sequence.duration_s == 9.0


def test_gap_that_is_shorter_than_a_response_joins_its_neighbours() -> None:
    sequence = budget_sequence(_episode([2.0, 3.55], 6.0), RULE)
    assert [phase.budget_ms for phase in sequence.phases] == [400.0, 90.0, 400.0]


def test_episode_without_switches_is_wide() -> None:
    sequence = budget_sequence(_episode([], 1.8), RULE)
    assert sequence.budgets_ms == (400.0,) * 10
    assert sequence.coverage == 0.0


def test_other_rule_makes_another_sequence() -> None:
    rule = BudgetRule(period_ms=100.0, tight_ms=50.0, wide_ms=200.0, before_s=0.5, after_s=0.1)
    sequence = budget_sequence(_episode([1.0], 2.0), rule)
    assert [(phase.budget_ms, phase.responses) for phase in sequence.phases] == [
        (200.0, 5), (50.0, 6), (200.0, 9),
    ]  # fmt: skip


def test_shipped_episode_has_a_sequence_as_long_as_it_is() -> None:
    sequence = budget_sequence(shipped().read(), RULE)
    assert sequence.coverage == pytest.approx(0.8484, abs=1e-4)
    assert len(sequence.budgets_ms) == round(8.97 / 0.18)


@given(st.lists(st.floats(0.0, 30.0), max_size=12), st.floats(1.0, 30.0), st.floats(50.0, 500.0))
def test_sequence_is_as_long_as_its_episode(
    switches_s: list[float], length_s: float, period_ms: float
) -> None:
    within = [switch_s for switch_s in switches_s if switch_s <= length_s]
    episode = _episode(within, length_s)
    sequence = budget_sequence(episode, BudgetRule(period_ms=period_ms))
    assert len(sequence.budgets_ms) == round(episode.duration_ns / 1e6 / period_ms)
    assert 0.0 <= sequence.coverage <= 1.0
    neighbours = zip(sequence.phases, sequence.phases[1:], strict=False)
    assert all(one.budget_ms != other.budget_ms for one, other in neighbours)


def test_episode_without_a_gripper_is_refused() -> None:
    episode = replace(_episode([1.0], 2.0), joints=('joint_6',))
    with pytest.raises(ConfigError, match='no gripper among its joints joint_6'):
        budget_sequence(episode, RULE)


def test_episode_of_no_length_is_refused() -> None:
    with pytest.raises(ConfigError, match='a response takes 180 ms'):
        budget_sequence(_episode([], 0.05), RULE)


@pytest.mark.parametrize(
    'changes',
    [
        {'period_ms': 0.0}, {'tight_ms': -1.0}, {'wide_ms': float('nan')}, {'before_s': -1.0},
        {'before_s': 0.0, 'after_s': 0.0}, {'tight_ms': 401.0},
    ],
)  # fmt: skip
def test_impossible_rule_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        BudgetRule(**changes)
