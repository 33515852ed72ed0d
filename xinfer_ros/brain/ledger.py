# SPDX-License-Identifier: Apache-2.0
"""What the contexts of episodes take of the cache, by what is known of each."""

from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.prefix_cache import held_tokens


class Ledger:
    """
    Adds up contexts, in whole blocks.

    It needs no metrics: prompts are counted where calls report them, and guessed where not.

    :param block_tokens: size of a cache block until the server tells it [tokens]
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._sizes: dict[str, int] = {}

    def grown(self, record: Record, tokens: int) -> None:
        """Take note of an episode's context [tokens]."""
        self._sizes[record.arrival.episode] = held_tokens(tokens, self.block_tokens)

    def size(self, record: Record, first: float) -> int:
        """
        Return an episode's context: what it is, what its agent expects, or a typical first one.

        :param first: a typical first prompt [tokens]
        """
        known = self._sizes.get(record.arrival.episode)
        if known is not None:
            return known
        return held_tokens(record.arrival.context_hint or round(first), self.block_tokens)

    def sizes(self, records: Sequence[Record], first: float) -> list[int]:
        """Return the contexts of some episodes [tokens]."""
        return [self.size(record, first) for record in records]

    def ended(self, record: Record) -> None:
        """Take note that an episode is over."""
        self._sizes.pop(record.arrival.episode, None)
