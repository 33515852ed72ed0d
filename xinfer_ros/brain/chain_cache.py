# SPDX-License-Identifier: Apache-2.0
"""The prefix cache of a simulated server: a session is one chain of blocks that only grows."""

from collections import OrderedDict

from xinfer_ros.brain.prefix_cache import blocks_of


class ChainCache:
    """
    What ``PrefixCache`` does with sessions whose prompts only grow, in a few operations a turn.

    :param blocks: size [blocks]
    :param block_tokens: size of a block [tokens]
    :param shared_tokens: the beginning that all prompts share, held for good; each chain counts it
        once more, since costs and sizes were fitted so [tokens]
    :param partial_hits: whether what is left of a chain is still found after its tail has gone;
        else the chain is lost with its first evicted block, as with hybrid attention
    """

    def __init__(
        self, blocks: int, block_tokens: int, shared_tokens: int, partial_hits: bool
    ) -> None:
        self._size = blocks
        self._block_tokens = block_tokens
        self._shared = shared_tokens // block_tokens
        self._partial_hits = partial_hits
        self._idle: OrderedDict[str, int] = OrderedDict()  # resident blocks, oldest first
        self._intact: dict[str, int] = {}  # tokens of the chains that have lost nothing
        self._held: dict[str, int] = {}
        self._idle_blocks = 0
        self._held_blocks = 0

    @property
    def held_share(self) -> float:
        """Return the share of all blocks that running requests hold."""
        return (self._held_blocks + self._shared) / self._size

    def resize(self, blocks: int) -> None:
        """Change the size; what does not fit is evicted, except for what is held."""
        self._size = blocks
        self._evict(0)

    def cached_tokens(self, session: str) -> int:
        """Return how many tokens of a session's next prompt are cached [tokens]."""
        found = self._shared
        if self._partial_hits:
            found = max(found, self._idle.get(session, 0))
        elif session in self._intact:
            found = max(found, self._intact[session] // self._block_tokens)
        return found * self._block_tokens

    def is_intact(self, session: str) -> bool:
        """Return whether a session's chain is there and has lost nothing."""
        return session in self._intact

    def hold(self, session: str, tokens: int) -> bool:
        """
        Hold a session's chain until it is released.

        :param tokens: of its prompt and answer
        :returns: False if other held chains leave no room; then nothing has changed
        """
        needed = blocks_of(tokens, self._block_tokens)
        if self._held_blocks + needed + self._shared > self._size and self._held:
            return False
        self._idle_blocks -= self._idle.pop(session, 0)
        self._intact.pop(session, None)
        self._evict(needed)
        self._held[session] = needed
        self._held_blocks += needed
        return True

    def release(self, session: str, tokens: int) -> None:
        """Let a session's chain be evicted from now on, last of all, its tail first."""
        self._held_blocks -= self._held.pop(session)
        whole = tokens // self._block_tokens  # an open block is lost
        self._idle[session] = whole
        self._idle_blocks += whole
        self._intact[session] = tokens
        self._evict(0)

    def _evict(self, needed: int) -> None:
        room = self._size - self._shared - self._held_blocks - needed
        while self._idle_blocks > room and self._idle:
            session, resident = next(iter(self._idle.items()))
            gone = min(resident, self._idle_blocks - room)
            self._idle_blocks -= gone
            self._intact.pop(session, None)
            if gone == resident:
                del self._idle[session]
            else:
                self._idle[session] = resident - gone
