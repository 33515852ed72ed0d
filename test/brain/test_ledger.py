# SPDX-License-Identifier: Apache-2.0
"""The ledger adds up what contexts take of the cache."""

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.controller import Arrival
from xinfer_ros.brain.ledger import Ledger


def record(episode: str, hint: int | None = None) -> Record:
    arrival = Arrival(episode=episode, robot='r', context_hint=hint)
    return Record(arrival=arrival, number=1, tokens=0)


def test_context_is_what_is_known_else_what_is_expected_in_whole_blocks() -> None:
    """BG-02: 17 tokens cost 32 with blocks of 16."""
    ledger = Ledger(16)
    assert ledger.sizes([record('a'), record('b', hint=17)], first=1) == [16, 32]
    ledger.grown(record('a'), 33)
    assert ledger.size(record('a'), first=1) == 48
