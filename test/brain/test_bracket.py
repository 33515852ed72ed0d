# SPDX-License-Identifier: Apache-2.0
"""The capacity is found from what hits and what misses."""

import numpy as np
import pytest

from xinfer_ros.brain.bracket import NS, CapacityBracket


def watch(bracket: CapacityBracket, capacity: float, from_s: int, to_s: int, load: float) -> None:
    """Let contexts be looked for each second, as far apart as what is allowed makes them."""
    random = np.random.default_rng(from_s)
    for second in range(from_s, to_s):
        distance = random.uniform(0.3, 1.0) * min(load, bracket.guess)
        if distance <= capacity:
            bracket.hit(distance, second * NS)
        else:
            bracket.miss(distance, second * NS, second * NS)
        bracket.tick(second * NS)


def test_guess_grows_with_what_hits_and_stays_below_what_misses() -> None:
    bracket = CapacityBracket(500.0)
    watch(bracket, 1000.0, 0, 600, load=2000.0)
    assert 0.9 * 1000 <= bracket.guess <= 1000
    assert bracket.upper is not None
    assert bracket.lower <= 1000 < bracket.upper


def test_guess_does_not_grow_past_what_is_needed() -> None:
    bracket = CapacityBracket(500.0)
    watch(bracket, 1000.0, 0, 600, load=300.0)
    assert bracket.guess == 500.0


def test_guess_does_not_pass_the_size_that_the_server_tells() -> None:
    bracket = CapacityBracket(500.0, most=700.0)
    watch(bracket, 1000.0, 0, 600, load=2000.0)
    assert bracket.guess == 700.0


def test_smaller_cache_is_noticed_by_two_misses_and_found_again() -> None:
    bracket = CapacityBracket(900.0)
    watch(bracket, 1000.0, 0, 300, load=2000.0)
    watch(bracket, 600.0, 300, 330, load=950.0)
    assert bracket.guess <= 620.0
    watch(bracket, 600.0, 330, 400, load=2000.0)
    assert 520.0 <= bracket.guess <= 620.0


def test_single_early_miss_changes_nothing() -> None:
    bracket = CapacityBracket(900.0)
    watch(bracket, 1000.0, 0, 300, load=2000.0)
    before = bracket.guess
    bracket.miss(300.0, 300 * NS, 300 * NS)
    assert bracket.guess == before


def test_hit_that_was_looked_for_before_the_collapse_proves_nothing() -> None:
    bracket = CapacityBracket(1000.0)
    bracket.shrink(100 * NS)
    bracket.hit(950.0, 99 * NS)
    assert bracket.lower == 0.0
    bracket.hit(550.0, 101 * NS)
    assert bracket.lower == 550.0


def test_larger_cache_is_noticed_and_used() -> None:
    bracket = CapacityBracket(1000.0)
    bracket.shrink(0)
    watch(bracket, 600.0, 1, 200, load=2000.0)
    assert bracket.guess <= 640.0
    watch(bracket, 1000.0, 200, 800, load=2000.0)
    assert bracket.guess >= 900.0


def test_failed_tries_become_rare() -> None:
    """Each try costs lost contexts: in a quiet hour after a collapse there are few misses."""
    bracket = CapacityBracket(1000.0)
    bracket.shrink(0)
    watch(bracket, 600.0, 1, 600, load=2000.0)
    misses = []
    random = np.random.default_rng(0)
    for second in range(600, 4200):
        distance = random.uniform(0.3, 1.0) * bracket.guess
        if distance > 600.0:
            misses.append(second)
            bracket.miss(distance, second * NS, second * NS)
        else:
            bracket.hit(distance, second * NS)
        bracket.tick(second * NS)
    assert len(misses) < 3600 * 0.02


def test_distance_between_truth_and_guess_is_narrow_at_last() -> None:
    bracket = CapacityBracket(700.0)
    watch(bracket, 1000.0, 0, 1200, load=2000.0)
    assert bracket.upper is not None
    assert bracket.upper - bracket.lower == pytest.approx(0.0, abs=0.1 * 1000)
