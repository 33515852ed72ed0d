# SPDX-License-Identifier: Apache-2.0
"""What contexts will come to is learned from episodes."""

import pytest

from xinfer_ros.brain.forecast import Forecast


def taught(turns: int, growth: int, episodes: int = 30) -> Forecast:
    forecast = Forecast(24.0, 28_000.0, 4_000.0, ahead=22)
    for _ in range(episodes):
        for number in range(1, turns + 1):
            before = 10_000 + growth * (number - 2) if number > 1 else None
            forecast.turn_ended(number, before, 10_000 + growth * (number - 1))
        forecast.episode_ended(turns)
    return forecast


def test_growth_and_first_prompt_are_learned() -> None:
    forecast = taught(turns=12, growth=1_000)
    assert forecast.growth_tokens == pytest.approx(1_000, rel=0.2)
    assert 10_000 < forecast.first_tokens < 12_000  # of 33, three were assumed ones


def test_few_turns_outweigh_what_was_assumed() -> None:
    forecast = Forecast(24.0, 28_000.0, 4_000.0, ahead=22)
    for _ in range(9):
        forecast.turn_ended(1, None, 1_000)
        forecast.turn_ended(2, 1_000, 1_400)
    assert forecast.first_tokens == pytest.approx(0.25 * 28_000 + 0.75 * 1_000)
    assert forecast.growth_tokens == pytest.approx(0.25 * 4_000 + 0.75 * 400)


def test_assumption_changes_only_what_was_not_learned_yet() -> None:
    forecast = Forecast(24.0, 28_000.0, 4_000.0, ahead=22)
    forecast.turn_ended(1, None, 28_000)
    forecast.assume(500.0, 60.0)
    assert (forecast.first_tokens, forecast.growth_tokens) == (28_000, 60)


def test_episode_is_largest_just_before_it_ends() -> None:
    forecast = taught(turns=12, growth=1_000)
    young = forecast.peak([(10_000, 1)], deviations=0.0)
    assert 10_000 + 8 * 1_000 < young < 10_000 + 13 * 1_000
    old = forecast.peak([(22_000, 12)], deviations=0.0)
    assert 22_000 <= old < 22_000 + 1_500


def test_contexts_add_up_and_uncertainty_is_added() -> None:
    forecast = taught(turns=12, growth=1_000)
    one = forecast.peak([(15_000, 6)], deviations=0.0)
    assert forecast.peak([(15_000, 6)] * 4, deviations=0.0) == pytest.approx(4 * one)
    assert forecast.peak([(15_000, 6)] * 4, deviations=2.0) >= 4 * one
    assert forecast.peak([], deviations=2.0) == 0.0


def test_before_anything_is_learned_episodes_are_of_typical_length() -> None:
    forecast = Forecast(24.0, 28_000.0, 4_000.0, ahead=22)
    assert forecast.peak([(28_000, 0)], deviations=0.0) > 28_000 + 10 * 4_000
