# SPDX-License-Identifier: Apache-2.0
"""Fairness is measured and kept."""

import pytest

from xinfer_ros.brain.fairness import FairShares, jain_index


def test_index_is_one_for_equal_shares_and_small_for_one_that_gets_all() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain_index([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain_index([0.0, 0.0]) == 1.0


def test_robot_that_comes_later_starts_with_the_least_of_those_present() -> None:
    shares = FairShares()
    shares.serve('a', 10.0)
    shares.serve('b', 7.0)
    shares.joined('c', ['a', 'b'])
    assert shares.served('c') == 7.0


def test_robots_that_are_away_are_forgotten_when_they_are_too_many() -> None:
    """Agents that name no robot are one each; a gateway remembered all that ever came."""
    shares = FairShares(most=3)
    for name in 'abc':
        shares.joined(name, [])
        shares.serve(name, 5.0)
    shares.joined('d', ['a'])
    assert [shares.served(name) for name in 'abcd'] == [5.0, 0.0, 0.0, 5.0]


def test_robot_that_comes_back_keeps_what_it_was_served() -> None:
    shares = FairShares()
    shares.serve('a', 10.0)
    shares.joined('a', ['b'])
    assert shares.served('a') == 10.0
