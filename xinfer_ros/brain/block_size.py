# SPDX-License-Identifier: Apache-2.0
"""The size of a cache block, told by the server or seen in what it finds."""

from math import gcd

ENOUGH = 4  # different numbers of cached tokens that show the size


class BlockSize:
    """
    What a prefix cache finds is a multiple of its block.

    :param guess: size until anything is known [tokens]
    """

    def __init__(self, guess: int) -> None:
        self.tokens = guess
        self._is_told = False
        self._divisor = 0
        self._seen: set[int] = set()

    @property
    def is_known(self) -> bool:
        """Return whether it is more than a guess."""
        return self._is_told or len(self._seen) >= ENOUGH

    def tell(self, tokens: int) -> None:
        """Take what the server says [tokens]."""
        self._is_told, self.tokens = True, tokens

    def found(self, cached_tokens: int, prompt_tokens: int) -> None:
        """
        Take note of what a call has found cached.

        Of a prompt that is cached to its end a server computes the last token anew, so that what
        it then reports is no multiple of anything.
        """
        if self._is_told or not 0 < cached_tokens < prompt_tokens - 1:
            return
        self._divisor = gcd(self._divisor, cached_tokens)
        if not self.is_known:
            self._seen.add(cached_tokens)
        if self.is_known:
            self.tokens = self._divisor
