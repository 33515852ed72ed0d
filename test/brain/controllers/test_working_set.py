# SPDX-License-Identifier: Apache-2.0
"""The default controller admits what the cache holds."""

from dataclasses import replace

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Action, Gauges
from xinfer_ros.brain.controllers.working_set import WorkingSet
from xinfer_ros.brain.guards import PreemptionGuard
from xinfer_ros.config.working_set import WorkingSetConfig

from ..fleet_of_turns import NS, ByHand

TIGHT_GAUGE = Gauges(block_tokens=16, usage=0.05)


def by_hand(capacity: int, **settings: float) -> ByHand:
    rule = WorkingSet(capacity, replace(WorkingSetConfig(), **settings))  # type: ignore[arg-type]
    controller = EpisodeAdmission(rule, PreemptionGuard())
    controller.metrics(Gauges(block_tokens=16), 0)
    return ByHand(controller)


def admitted(fleet: ByHand) -> int:
    return fleet.controller.state(fleet.now_ns).admitted


def test_seventh_episode_waits_although_the_gauge_reads_five_percent() -> None:
    """BG-02: 200,000 tokens, blocks of 16, episodes of 30,000; one that ends admits it."""
    fleet = by_hand(200_000)
    fleet.controller.metrics(TIGHT_GAUGE, 0)
    for number in range(7):
        fleet.arrive(f'e{number}', hint=30_000)
        fleet.controller.metrics(TIGHT_GAUGE, 0)
    assert admitted(fleet) == 6
    place = fleet.controller.place('e6', 0)
    assert place is not None
    assert place.position == 1
    fleet.now_ns += 60 * NS
    assert fleet.ended('e2') == [('e6', Action.ADMIT)]


def test_contexts_count_in_whole_blocks() -> None:
    """BG-02: with blocks of 880 tokens an episode of 17 takes 880."""
    fleet = by_hand(8_800)
    fleet.controller.metrics(Gauges(block_tokens=880), 0)
    for number in range(12):
        fleet.arrive(f'e{number}', hint=17)
    assert admitted(fleet) == 9  # of ten blocks, with the margin


def test_place_of_an_episode_that_has_had_turns_is_free_at_once() -> None:
    """BG-02: the end admits the next one, although the cache still holds its context."""
    fleet = by_hand(200_000)
    for number in range(7):
        fleet.arrive(f'e{number}', hint=30_000)
    for number in range(6):
        fleet.turn(f'e{number}', 30_000, 0)
    assert fleet.ended('e2') == [('e6', Action.ADMIT)]


def test_calls_that_the_server_refuses_grow_no_context() -> None:
    """An agent that asks again and again, too long or too often, pushes nobody out."""
    fleet = by_hand(200_000, typical_prompt_tokens=10_000.0, typical_growth_tokens=3000.0)
    for name in ('a', 'b'):
        fleet.arrive(name)
        fleet.turn(name, 10_000, 0)
    assert [fleet.refused('a') for _ in range(80)] == [[]] * 80
    assert admitted(fleet) == 2


def test_context_of_an_ended_episode_counts_until_those_that_go_on_were_used_after_it() -> None:
    """A cache gives up what was used longest ago: here the context that is still needed."""
    fleet = by_hand(100_000, typical_prompt_tokens=30_000.0, typical_growth_tokens=1.0)
    for name, prompt in (('b', 40_000), ('a', 30_000)):
        fleet.arrive(name)
        fleet.turn(name, prompt, 0)
    assert fleet.arrive('c') == []
    assert fleet.ended('a') == []
    fleet.now_ns += 60 * NS
    assert fleet.decide() == []
    assert fleet.turn('b', 40_001, 40_000) == [('c', Action.ADMIT)]


def test_place_of_an_ended_episode_is_free_where_its_context_goes_first() -> None:
    """Episodes that end together leave no pause: all their places are given at once."""
    fleet = by_hand(100_000, typical_prompt_tokens=30_000.0, typical_growth_tokens=1.0)
    for name, prompt in (('a', 30_000), ('b', 40_000)):
        fleet.arrive(name)
        fleet.turn(name, prompt, 0)
    assert fleet.arrive('c') == []
    assert fleet.ended('a') == [('c', Action.ADMIT)]
    assert fleet.arrive('d') == []
    assert fleet.ended('b') == [('d', Action.ADMIT)]


def test_cache_of_any_size_begins_with_a_few_episodes_and_learns_them_quickly() -> None:
    """With assumed contexts of 28,000 tokens a cache of 51,200 admitted one of 24 for minutes."""
    fleet = by_hand(51_200)
    for number in range(24):
        fleet.arrive(f'e{number}')
    assert admitted(fleet) == 4
    for prompt in (1_000, 1_400, 1_800):
        for number in range(4):
            fleet.turn(f'e{number}', prompt, prompt - 400)
    assert 6 <= admitted(fleet) <= 12


def test_growth_is_foreseen() -> None:
    few = by_hand(1_000_000, typical_growth_tokens=10_000.0)
    many = by_hand(1_000_000, typical_growth_tokens=100.0)
    for fleet in (few, many):
        for number in range(40):
            fleet.arrive(f'e{number}')
    assert 0 < admitted(few) < admitted(many)


def test_youngest_is_parked_when_the_contexts_overshoot_and_comes_back() -> None:
    fleet = by_hand(100_000, typical_prompt_tokens=100.0, typical_growth_tokens=100.0)
    for name in 'abc':
        fleet.arrive(name)
    assert admitted(fleet) == 3
    fleet.turn('a', 40_000)
    fleet.turn('b', 30_000)
    assert fleet.turn('c', 35_000) == [('c', Action.PARK)]
    reason = fleet.decisions[-1].reason
    assert 'of 100,000 tokens' in reason
    assert fleet.ended('a') == [('c', Action.RESUME)]


def test_after_a_collapse_those_stay_that_were_used_last() -> None:
    """The youngest goes first in quiet times; now the cache holds what was used last."""
    fleet = by_hand(1_000_000, typical_prompt_tokens=20_000.0, typical_growth_tokens=1_000.0)
    fleet_of_eight(fleet)
    fleet.turn('a', 90_000, 90_000)
    lose(fleet)
    parked = [name for name, action in fleet.decide() if action is Action.PARK]
    assert parked[:2] == ['b', 'c']
    assert not {'a', 'h'} & set(parked)


def test_prompts_longer_than_assumed_are_no_loss_of_capacity() -> None:
    """On a real server the first seconds of a cold fleet cut the estimate to 60 %."""
    fleet = by_hand(51_200)
    for name in 'abcd':
        fleet.arrive(name)
        fleet.turn(name, 5_000, 0)
    lose(fleet)
    assert fleet.controller.state(fleet.now_ns).estimate_tokens == 51_200


def test_last_episode_is_never_parked() -> None:
    fleet = by_hand(1_000)
    fleet.arrive('a')
    assert fleet.turn('a', 50_000) == []
    assert admitted(fleet) == 1


def test_rewritten_prefix_is_no_sign_of_a_small_cache() -> None:
    """An agent that drops old pictures rewrites its prompt; nothing was evicted."""
    kept, rewritten = by_hand(1_000_000), by_hand(1_000_000)
    for fleet, share in ((kept, 1.0), (rewritten, 0.5)):
        for name in 'ab':
            fleet.arrive(name)
        for prompt in range(50_000, 100_000, 5_000):
            for name in 'ab':
                fleet.turn(name, prompt, 1_000, kept=share)
    assert kept.controller.state(0).estimate_tokens < 300_000  # type: ignore[operator]
    assert rewritten.controller.state(0).estimate_tokens == 1_000_000


def test_part_of_a_context_that_is_found_measures_the_cache() -> None:
    fleet = by_hand(1_000_000)
    for name in 'ab':
        fleet.arrive(name)
        fleet.turn(name, 50_000, 0)
    fleet.turn('a', 50_000, 40_000)  # 100,000 apart, and 10,000 of them lost
    estimate = fleet.controller.state(0).estimate_tokens
    assert estimate is not None
    assert 89_000 <= estimate <= 91_000


def test_size_that_the_server_tells_is_the_start() -> None:
    fleet = by_hand(0)
    fleet.controller.metrics(Gauges(capacity_tokens=3_000_000), 0)
    assert fleet.controller.state(0).estimate_tokens == 0.65 * 3_000_000


def test_ledger_goes_on_without_metrics_and_without_usage() -> None:
    """Contexts are then guessed by what a turn adds; the last estimate of the cache stays."""
    fleet = by_hand(0, typical_growth_tokens=10_000.0)
    fleet.controller.metrics(Gauges(capacity_tokens=200_000), 0)
    for name in 'abcd':
        fleet.arrive(name, hint=25_000)
    for _ in range(20):
        fleet.controller.metrics(None, fleet.now_ns)
        for name in 'abcd':
            place = fleet.controller.place(name, fleet.now_ns)
            if place is not None and place.position is None:
                fleet.start(name)
                fleet.end(name, None)
    assert fleet.controller.state(fleet.now_ns).estimate_tokens == 130_000
    assert admitted(fleet) == 1


def fleet_of_eight(fleet: ByHand) -> None:
    """Let eight episodes have three turns each."""
    for name in 'abcdefgh':
        fleet.arrive(name)
        fleet.turn(name, 90_000, 0)
    for name in 2 * 'abcdefgh':
        fleet.turn(name, 90_000, 90_000)


def lose(fleet: ByHand) -> None:
    """Let the server's counters tell that nearly nothing is found any more."""
    queries = hits = 10_000_000
    for _ in range(8):
        fleet.now_ns += NS
        fleet.controller.metrics(Gauges(prefix_queries=queries, prefix_hits=hits), fleet.now_ns)
        queries, hits = queries + 90_000, hits + 10_000


def test_counters_of_the_server_raise_the_alarm_before_a_call_ends() -> None:
    fleet = by_hand(1_000_000, typical_prompt_tokens=20_000.0, typical_growth_tokens=1_000.0)
    fleet_of_eight(fleet)
    queries = hits = 10_000_000
    for _ in range(10):
        fleet.now_ns += NS
        gauges = Gauges(prefix_queries=queries, prefix_hits=hits)
        fleet.controller.metrics(gauges, fleet.now_ns)
    assert fleet.decide() == []
    for _ in range(4):
        fleet.now_ns += NS
        queries, hits = queries + 90_000, hits + 10_000
        gauges = Gauges(prefix_queries=queries, prefix_hits=hits)
        fleet.controller.metrics(gauges, fleet.now_ns)
    estimate = fleet.controller.state(fleet.now_ns).estimate_tokens
    assert estimate is not None
    assert estimate <= 620_000
    assert [action for _, action in fleet.decide()].count(Action.PARK) >= 2
