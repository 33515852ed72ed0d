# SPDX-License-Identifier: Apache-2.0
"""The search for capacity on scripted fleets, lucky and unlucky ones among them."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import PAPER
from xinfer_ros.fleet.erc import STEP, ErcSearch, find_ercs
from xinfer_ros.fleet.records import RoundRecord

from .fake_rounds import round_record


def _search(passes: Callable[[int], bool], max_robots: int = 40) -> ErcSearch:
    """Return a finished search."""
    search = ErcSearch(max_robots)
    while wanted := search.wanted():
        for robots in wanted:
            search.take(robots, passes(robots))
    return search


@pytest.mark.parametrize('capacity', [0, 1, 3, 4, 5, 11, 12, 18, 39])
def test_capacity_of_an_honest_fleet_is_found(capacity: int) -> None:
    search = _search(lambda robots: robots <= capacity)
    assert search.erc == capacity
    assert search.first_failing == capacity + 1


def test_no_failure_up_to_the_limit_is_told() -> None:
    search = _search(lambda robots: True, max_robots=18)
    assert (search.erc, search.first_failing) == (18, None)
    assert search.passing[-4:] == (15, 16, 17, 18)


def test_lucky_population_above_a_failure_does_not_count() -> None:
    search = _search(lambda robots: robots <= 13 or robots == 16)
    assert search.erc == 13
    assert 16 in search.passing


def test_failure_below_the_last_coarse_pass_is_found() -> None:
    """15 fails and 16, which the coarse steps meet, passes by luck."""
    search = _search(lambda robots: robots <= 16 and robots != 15)
    assert (search.erc, search.first_failing) == (14, 15)


def test_chain_of_failures_is_followed_down() -> None:
    search = _search(lambda robots: robots not in (9, 13) and robots <= 16)
    assert (search.erc, search.first_failing) == (8, 9)


def test_limit_is_tested_even_if_it_is_no_coarse_step() -> None:
    assert _search(lambda robots: robots <= 17, max_robots=18).first_failing == 18
    assert _search(lambda robots: robots != 10, max_robots=10).erc == 9


@given(fails=st.sets(st.integers(1, 30)), limit=st.integers(1, 30))
def test_every_smaller_fleet_tested_passes_and_the_next_fails(fails: set[int], limit: int) -> None:
    search = _search(lambda robots: robots not in fails, limit)
    assert all(robots > search.erc for robots in search.failing)
    if search.first_failing is None:
        assert search.erc == limit
    else:
        assert search.first_failing == search.erc + 1
    near = range(max(search.erc - STEP + 1, 1), search.erc + 1)
    assert set(near) <= set(search.passing)


def test_search_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match='1 to 4096 are allowed'):
        ErcSearch(0)


def test_searches_run_side_by_side_and_tell_every_population() -> None:
    capacities = {'xinfer': 9, 'fifo': 0}
    waves = []
    told = []

    def simulate(wave: Sequence[tuple[str, int]]) -> list[list[RoundRecord]]:
        waves.append(list(wave))
        return [
            [
                round_record(
                    policy=policy,
                    robots=robots,
                    attainment=0.97 if robots <= capacities[policy] else 0.9 + seed / 100,
                    min_rate_hz=4.0 + seed,
                )
                for seed in (0, 1)
            ]
            for policy, robots in wave
        ]

    found = find_ercs(
        {policy: (ErcSearch(40), PAPER) for policy in capacities},
        simulate,
        lambda policy, robots, rounds, faults: told.append((policy, robots, faults)),
    )
    assert waves[0] == [('xinfer', 4), ('fifo', 4)]
    assert ('fifo', 4, ['90.0 % on time, 95 % is needed']) in told
    assert len(told) == sum(len(wave) for wave in waves)
    assert (found['xinfer'].erc, found['xinfer'].first_failing) == (9, 10)
    assert (found['xinfer'].attainment, found['xinfer'].min_rate_hz) == (0.97, 4.0)
    assert (found['fifo'].erc, found['fifo'].first_failing) == (0, 1)
    assert (found['fifo'].policy, found['fifo'].attainment) == ('fifo', None)
    assert found['fifo'].rounds == 2
