# SPDX-License-Identifier: Apache-2.0
"""What the contexts of episodes take of the cache, by what is known of each."""

from collections import deque
from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.prefix_cache import held_tokens


class Ledger:
    """
    Adds up contexts, in whole blocks, with those of episodes that have ended a moment ago.

    It needs no metrics: prompts are counted where calls report them, and guessed where not.

    :param block_tokens: size of a cache block until the server tells it [tokens]
    :param linger_ns: how long the context of an ended episode still counts [ns]
    """

    def __init__(self, block_tokens: int, linger_ns: int) -> None:
        self.block_tokens = block_tokens
        self._linger_ns = linger_ns
        self._sizes: dict[str, int] = {}
        self._over: deque[tuple[int, int]] = deque()  # end, context
        self._over_tokens = 0

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

    def ended(self, record: Record, now_ns: int) -> None:
        """
        Take note that an episode is over; its context stays a while.

        One whose agent has told its length has had a place of just that size, which is free now.
        """
        tokens = self._sizes.pop(record.arrival.episode, 0)
        if record.arrival.context_hint:
            return
        self._over.append((now_ns, tokens))
        self._over_tokens += tokens

    def lingering(self, now_ns: int) -> int:
        """Return the contexts of episodes that have just ended [tokens]."""
        while self._over and self._over[0][0] <= now_ns - self._linger_ns:
            self._over_tokens -= self._over.popleft()[1]
        return self._over_tokens
