# SPDX-License-Identifier: Apache-2.0
"""Reuse distances are those that an LRU cache decides by."""

from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.brain.chain_cache import ChainCache
from xinfer_ros.brain.recency import RecencyStack


def test_distance_is_the_own_context_and_all_that_were_used_since() -> None:
    stack = RecencyStack()
    for name, tokens in (('a', 10), ('b', 20), ('c', 30)):
        stack.release(name, tokens)
    assert [stack.distance(name) for name in 'abc'] == [60, 50, 30]
    stack.release('a', 15)
    assert [stack.distance(name) for name in 'abc'] == [15, 65, 45]
    assert stack.distance('nobody') is None


def test_context_in_use_counts_wherever_it_stands_in_the_order() -> None:
    stack = RecencyStack()
    for name, tokens in (('a', 10), ('b', 20), ('c', 30)):
        stack.release(name, tokens)
    stack.hold('a', 12)
    assert stack.distance('b') == 12 + 20 + 30
    assert stack.distance('a') == 60


def test_contexts_of_ended_episodes_linger_as_long_as_a_kept_one_was_used_before_them() -> None:
    stack = RecencyStack()
    for name, tokens in (('a', 10), ('b', 20), ('c', 30), ('d', 40)):
        stack.release(name, tokens)
    assert stack.lingering('ad', within=1000) == 0
    stack.end('b')
    stack.end('c')
    assert stack.lingering('ad', within=1000) == 50
    assert stack.lingering('d', within=1000) == 0
    assert stack.lingering('', within=1000) == 0
    stack.release('a', 12)
    assert stack.lingering('ad', within=1000) == 0  # a cache gives up b and c first now
    stack.release('b', 25)
    assert stack.lingering('ad', within=1000) == 0  # an episode of that id goes on


def test_context_in_use_or_lost_at_any_rate_lets_nothing_linger() -> None:
    stack = RecencyStack()
    for name, tokens in (('a', 10), ('b', 20), ('c', 30)):
        stack.release(name, tokens)
    stack.end('b')
    assert stack.lingering('ac', within=60) == 20
    assert stack.lingering('ac', within=45) == 0
    stack.hold('a', 10)
    assert stack.lingering('ac', within=60) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=40))
def test_context_is_found_exactly_where_the_distance_fits(turns: list[tuple[int, int]]) -> None:
    """The ground of the controller's estimate: a hit at D proves D, a miss less."""
    capacity = 40
    cache, stack = ChainCache(capacity, 1, 0, False), RecencyStack()
    sizes = dict.fromkeys(range(6), 0)
    for number, grown in turns:
        session, tokens = str(number), sizes[number] + grown
        if tokens > capacity:
            continue
        sizes[number] = tokens
        distance = stack.distance(session)
        if distance is not None:
            assert cache.is_intact(session) == (distance <= capacity)
        assert cache.hold(session, tokens)
        cache.release(session, tokens)
        stack.release(session, tokens)
