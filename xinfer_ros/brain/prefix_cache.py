# SPDX-License-Identifier: Apache-2.0
"""A prefix cache as LLM servers have one: blocks of tokens, the least recently used goes first."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from xinfer_ros.errors import ConfigError


def blocks_of(tokens: int, block_tokens: int) -> int:
    """Return how many blocks a context occupies: the last one counts in full."""
    return -(-tokens // block_tokens)


def held_tokens(tokens: int, block_tokens: int) -> int:
    """Return what a context costs the cache, in whole blocks [tokens]."""
    return blocks_of(tokens, block_tokens) * block_tokens


def prefix_keys(tokens: Sequence[int], block_tokens: int) -> list[int]:
    """
    Return a key of each full block: a hash of everything from the start to its end.

    :param tokens: a prompt
    """
    keys, key = [], 0
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        key = hash((key, *tokens[end - block_tokens : end]))
        keys.append(key)
    return keys


class PrefixCache:
    """
    Finds the longest cached prefix of a prompt, and evicts what was used least recently.

    A request holds its blocks from ``hold`` to ``release``: they can't be evicted meanwhile.
    Blocks are released tail first, so that the beginning of a prompt outlives its end. Only full
    blocks can be found again; the last, partly filled one is lost with the request.

    :param blocks: size [blocks]
    :param block_tokens: size of a block [tokens]
    """

    def __init__(self, blocks: int, block_tokens: int) -> None:
        if blocks < 1 or block_tokens < 1:
            raise ConfigError(
                f'a cache of {blocks} blocks of {block_tokens} tokens; both must be at least 1'
            )
        self.block_tokens = block_tokens
        self.blocks = blocks
        self._free: OrderedDict[int, None] = OrderedDict()  # cached, unused, oldest first
        self._users: dict[int, int] = {}  # of blocks that are held
        self._held: dict[Hashable, tuple[list[int], int]] = {}
        self._open = 0  # partly filled blocks of running requests

    @property
    def used_blocks(self) -> int:
        """Return how many blocks running requests hold; what is merely cached counts as free."""
        return len(self._users) + self._open

    def cached_tokens(self, tokens: Sequence[int]) -> int:
        """Return how much of a prompt's beginning is cached [tokens]."""
        return self._found(prefix_keys(tokens, self.block_tokens)) * self.block_tokens

    def hold(self, request: Hashable, tokens: Sequence[int]) -> int | None:
        """
        Make room for a request's tokens and hold them.

        :param request: its id, for ``release``
        :param tokens: of its prompt and its answer
        :returns: how many of the first tokens were cached, None if there is no room [tokens]
        :raises ConfigError: if the request is held already
        """
        if request in self._held:
            raise ConfigError(f'request {request!r} holds blocks already; release it first')
        keys = prefix_keys(tokens, self.block_tokens)
        found = self._found(keys)
        partial = int(len(tokens) % self.block_tokens > 0)
        idle = sum(key in self._free for key in keys[:found])
        if len(keys) - found + partial > self.blocks - self.used_blocks - idle:
            return None
        for key in keys:
            self._free.pop(key, None)
            self._users[key] = self._users.get(key, 0) + 1
        self._open += partial
        while len(self._free) + self.used_blocks > self.blocks:
            self._free.popitem(last=False)
        self._held[request] = keys, partial
        return found * self.block_tokens

    def release(self, request: Hashable) -> None:
        """Let a request's blocks be evicted from now on; an unknown one is ignored."""
        keys, partial = self._held.pop(request, ([], 0))
        self._open -= partial
        for key in reversed(keys):
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
                self._free[key] = None

    def _found(self, keys: Sequence[int]) -> int:
        for place, key in enumerate(keys):
            if key not in self._users and key not in self._free:
                return place
        return len(keys)
