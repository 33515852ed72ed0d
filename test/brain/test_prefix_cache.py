# SPDX-License-Identifier: Apache-2.0
"""The prefix cache, and the quicker one of the simulator beside it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.brain.chain_cache import ChainCache
from xinfer_ros.brain.prefix_cache import PrefixCache, blocks_of, held_tokens
from xinfer_ros.errors import ConfigError


@pytest.mark.parametrize(('block', 'cost'), [(16, 32), (880, 880)])
def test_last_block_counts_in_full(block: int, cost: int) -> None:
    """BG-02: 17 tokens cost 32 with blocks of 16, and 880 with blocks of 880."""
    assert held_tokens(17, block) == cost
    cache = PrefixCache(blocks=100, block_tokens=block)
    cache.hold('a', range(17))
    assert cache.used_blocks * block == cost


def test_cached_context_of_an_idle_session_looks_free() -> None:
    """BG-02: the gauge of a server counts what runs, not what an idle episode will need."""
    cache = PrefixCache(blocks=10, block_tokens=4)
    cache.hold('a', range(40))
    assert cache.used_blocks == 10
    cache.release('a')
    assert cache.used_blocks == 0
    assert cache.cached_tokens(range(40)) == 40


def test_grown_prompt_finds_all_full_blocks_of_the_one_before() -> None:
    cache = PrefixCache(blocks=100, block_tokens=4)
    assert cache.hold('a', range(10)) == 0
    cache.release('a')
    assert cache.hold('b', range(20)) == 8


def test_prompt_that_differs_at_its_beginning_finds_nothing() -> None:
    cache = PrefixCache(blocks=100, block_tokens=4)
    cache.hold('a', range(20))
    assert cache.cached_tokens([99, *range(1, 20)]) == 0


def test_least_recently_used_goes_first_and_its_tail_before_its_head() -> None:
    cache = PrefixCache(blocks=10, block_tokens=1)
    for name, start in (('a', 0), ('b', 100)):
        cache.hold(name, range(start, start + 5))
        cache.release(name)
    cache.hold('c', range(200, 203))
    assert cache.cached_tokens(range(5)) == 2
    assert cache.cached_tokens(range(100, 105)) == 5


def test_what_is_held_is_never_evicted() -> None:
    cache = PrefixCache(blocks=10, block_tokens=1)
    cache.hold('a', range(6))
    assert cache.hold('b', range(100, 105)) is None
    assert cache.cached_tokens(range(6)) == 6
    cache.release('a')
    assert cache.hold('b', range(100, 105)) == 0


def test_beginning_that_prompts_share_is_held_once() -> None:
    cache = PrefixCache(blocks=10, block_tokens=1)
    cache.hold('a', [*range(4), 50, 51])
    assert cache.hold('b', [*range(4), 60, 61]) == 4
    assert cache.used_blocks == 8
    cache.release('a')
    assert cache.used_blocks == 6


def test_request_that_holds_blocks_can_not_hold_more() -> None:
    cache = PrefixCache(blocks=10, block_tokens=1)
    cache.hold('a', range(2))
    with pytest.raises(ConfigError, match="'a' holds blocks already"):
        cache.hold('a', range(3))


def test_cache_needs_a_block() -> None:
    with pytest.raises(ConfigError, match='0 blocks of 16 tokens'):
        PrefixCache(0, 16)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=40))
def test_cache_of_chains_does_what_the_cache_of_blocks_does(turns: list[tuple[int, int]]) -> None:
    """Sessions that grow one after the other; what is found is the same at every turn."""
    blocks, size = 20, 2
    true, chains = PrefixCache(blocks, size), ChainCache(blocks, size, 0, partial_hits=True)
    lengths = dict.fromkeys(range(5), 0)
    for session, grown in turns:
        if blocks_of(lengths[session] + grown, size) > blocks:
            continue
        lengths[session] += grown
        tokens = [1000 * session + place for place in range(lengths[session])]
        expected = true.cached_tokens(tokens)
        assert chains.cached_tokens(str(session)) == expected
        assert true.hold('call', tokens) == expected
        assert chains.hold(str(session), len(tokens))
        true.release('call')
        chains.release(str(session), len(tokens))


def test_chain_is_lost_as_a_whole_unless_the_cache_has_partial_hits() -> None:
    for partial_hits, found in ((False, 0), (True, 4)):
        cache = ChainCache(10, 1, 0, partial_hits)
        for name in ('a', 'b'):
            cache.hold(name, 6)
            cache.release(name, 6)
        assert not cache.is_intact('a')
        assert cache.cached_tokens('a') == found
        assert cache.cached_tokens('b') == 6


def test_smaller_cache_evicts_the_oldest() -> None:
    cache = ChainCache(20, 1, 0, False)
    for name in ('a', 'b'):
        cache.hold(name, 8)
        cache.release(name, 8)
    cache.resize(12)
    assert not cache.is_intact('a')
    assert cache.is_intact('b')
    assert cache.hold('c', 13)  # alone it is computed, however long it is
    assert cache.held_share > 1.0
    assert not cache.hold('d', 1)
