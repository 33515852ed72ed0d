# SPDX-License-Identifier: Apache-2.0
"""In which order contexts were used last, and so how much a cache must hold to keep one."""

from collections import OrderedDict
from collections.abc import Iterable

MOST_CONTEXTS = 4096


class RecencyStack:
    """Contexts by their last use, those of episodes that are over included."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, int] = OrderedDict()
        self._held: dict[str, int] = {}  # in use now: in the cache, wherever in the order
        self._over: set[str] = set()

    def hold(self, episode: str, tokens: int) -> None:
        """Take note that an episode's context is in use until it is released."""
        self._held[episode] = tokens

    def release(self, episode: str, tokens: int) -> None:
        """Take note that an episode's context, now of this size, is not in use any more."""
        self._held.pop(episode, None)
        self._over.discard(episode)
        self._tokens[episode] = tokens
        self._tokens.move_to_end(episode)
        while len(self._tokens) > MOST_CONTEXTS:
            self._over.discard(self._tokens.popitem(last=False)[0])

    def end(self, episode: str) -> None:
        """Take note that nobody will use an episode's context again."""
        if episode in self._tokens:
            self._over.add(episode)

    def lingering(self, kept: Iterable[str], within: float) -> int:
        """
        Return the contexts of episodes that are over which a cache gives up after a kept one.

        That are those used after the kept one whose last use is the longest ago.

        :param kept: episodes that go on
        :param within: how deep the cache is; what lies deeper is lost at any rate [tokens]
        :returns: their sum [tokens]
        """
        if not self._over:
            return 0
        left = {name for name in kept if name in self._tokens and name not in self._held}
        total, depth = 0, sum(self._held.values())
        for episode, tokens in reversed(self._tokens.items()):
            depth += 0 if episode in self._held else tokens
            if not left or depth > within:
                break
            left.discard(episode)
            total += tokens if episode in self._over else 0
        return total

    def distance(self, episode: str) -> int | None:
        """
        Return what has to be in the cache so that an episode's context still is.

        :returns: its own context and all that were used since its last use, None if it never was
            used or is forgotten [tokens]
        """
        if episode not in self._tokens:
            return None
        total = sum(self._held.values()) - self._held.get(episode, 0)
        for other, tokens in reversed(self._tokens.items()):
            if other == episode:
                return total + tokens
            if other not in self._held:
                total += tokens
        return total
