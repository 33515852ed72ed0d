# SPDX-License-Identifier: Apache-2.0
"""In which order contexts were used last, and so how much a cache must hold to keep one."""

from collections import OrderedDict

MOST_CONTEXTS = 4096


class RecencyStack:
    """Contexts by their last use, those of episodes that are over included."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, int] = OrderedDict()
        self._held: dict[str, int] = {}  # in use now: in the cache, wherever in the order

    def hold(self, episode: str, tokens: int) -> None:
        """Take note that an episode's context is in use until it is released."""
        self._held[episode] = tokens

    def release(self, episode: str, tokens: int) -> None:
        """Take note that an episode's context, now of this size, is not in use any more."""
        self._held.pop(episode, None)
        self._tokens[episode] = tokens
        self._tokens.move_to_end(episode)
        while len(self._tokens) > MOST_CONTEXTS:
            self._tokens.popitem(last=False)

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
