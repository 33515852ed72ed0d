# SPDX-License-Identifier: Apache-2.0
"""The effective capacity of a prefix cache, between what has hit and what has missed."""

from collections import deque

NS = 1_000_000_000


class CapacityBracket:
    """
    Narrows the capacity from reuse distances.

    A context found at distance ``D`` proves a capacity of at least ``D``, a lost one of less. The
    guess lies between: close to the proven where a miss is known, a little above it where none
    is. A known miss is forgotten after a quiet time, which doubles with each try that failed.
    Misses well below what used to hit mean that the cache has become smaller: what was proven
    before is void.

    :param guess: capacity to begin with [tokens]
    :param most: what it can't exceed, None if unknown [tokens]
    :param is_blind: whether the guess says nothing of the cache
    """

    CARE = 0.3  # of the way from the proven to the known miss
    CUT = 0.6  # of the guess, when the cache has become smaller
    FORGET = 0.01  # a known miss is put higher by this share, by twice as much the next time
    MOST_FORGET = 0.02
    ANEW, MOST_ANEW = 0.03, 0.1  # the same when the cache has become smaller
    NARROW = 0.04  # a bracket that is not made narrower on purpose
    REACH = 1.05  # of the proven, while no miss is known
    LARGER = 1.12  # the same when the cache has become larger
    BLIND = 1.2  # the same when the first guess says nothing
    STEP = 1.1  # above what is proven at most, when a bracket is made narrower
    USED = 0.88  # proven of the guess: it has been put to the test
    TOLERANCE = 0.06  # between distance and truth
    WIDE = 0.8  # proven less than this share of the known miss: little is known
    TIGHT = 1.12  # known miss over proven: nothing is left to be tried
    SUSPECTS = 2  # misses that prove a smaller cache
    SUSPECT_NS = 60 * NS
    SETTLE_NS = 15 * NS
    AGAIN_NS = 45 * NS  # between two steps of forgetting
    SOON_NS = 60 * NS  # quiet after which a miss is forgotten, when all is new
    MOST_SOON_NS = 180 * NS
    LATE_NS = 600 * NS

    def __init__(self, guess: float, most: float | None = None, *, is_blind: bool = False) -> None:
        self.guess = guess
        self.lower = 0.0
        self.upper: float | None = None
        self._most = most
        self._hits: deque[tuple[int, float]] = deque(maxlen=64)
        self._suspects: deque[tuple[int, float]] = deque(maxlen=8)
        self._void_ns = -1  # what was looked for before proves nothing
        self._moved_ns = 0
        self._missed_ns = 0
        self._quiet_ns = self.LATE_NS
        self._most_quiet_ns = self.LATE_NS
        self._reach = self.BLIND if is_blind else self.REACH
        self._is_trying = False  # whether a miss would be the price of forgetting one
        self._forget, self._most_forget = self.FORGET, self.MOST_FORGET

    def hit(self, distance: float, at_ns: int) -> None:
        """
        Take note that a context was found at this distance [tokens].

        :param at_ns: when it was looked for
        """
        if at_ns <= self._void_ns:
            return
        self._hits.append((at_ns, distance))
        if self.upper is not None and distance > self.upper * (1.0 + self.TOLERANCE):
            self.upper = None  # the cache has become larger
            self._reach = self.LARGER
        self.lower = max(self.lower, min(distance, self.upper or distance))
        if self.lower > self.guess:
            self._move(self.lower, at_ns)

    def miss(self, distance: float, at_ns: int, now_ns: int) -> None:
        """
        Take note that a context was lost at this distance [tokens].

        :param at_ns: when it was looked for
        """
        if distance < self.lower * (1.0 - self.TOLERANCE):
            self._suspect(distance, at_ns, now_ns)
            return
        if self.upper is not None and distance >= self.upper:
            return
        self.upper, self._reach = distance, self.REACH
        self.lower = min(self.lower, 0.99 * distance)
        self._missed_ns = now_ns
        if self._is_trying:
            self._quiet_ns = min(2 * self._quiet_ns, self._most_quiet_ns)
            self._is_trying = False
        is_late = self._quiet_ns == self.LATE_NS
        self._forget = self.FORGET if is_late else self.ANEW
        self._most_forget = self.MOST_FORGET if is_late else self.MOST_ANEW
        self._move(min(self.guess, self._careful()), now_ns)

    def shrink(self, now_ns: int) -> None:
        """Take note that so much is lost that the cache must have become smaller."""
        self._suspects.clear()
        self._void_ns = self._missed_ns = now_ns
        self.upper = min(self.upper or self.guess, self.guess)
        self.lower = 0.0
        self._quiet_ns, self._most_quiet_ns = self.SOON_NS, self.MOST_SOON_NS
        self._is_trying = False
        self._forget, self._most_forget = self.ANEW, self.MOST_ANEW
        self._move(self.CUT * self.guess, now_ns)

    def tick(self, now_ns: int) -> None:
        """Let time pass: where all is quiet, reach out."""
        if self.upper is None:
            self._move(max(self.guess, self._reach * self.lower), now_ns)
            return
        is_used = self.lower >= self.USED * self.guess
        is_tight = is_used and self.upper <= self.TIGHT * self.lower
        if is_tight and now_ns - self._missed_ns > self._quiet_ns:
            self._is_trying = True
            self.upper *= 1.0 + self._forget
            self._forget = min(2.0 * self._forget, self._most_forget)
            self._missed_ns = now_ns - self._quiet_ns + self.AGAIN_NS
        if now_ns - max(self._moved_ns, self._missed_ns) < self.SETTLE_NS:
            return
        if self.lower < self.WIDE * self.upper:
            self._move(max(self.guess, min(self._careful(), self.STEP * self.guess)), now_ns)
        elif is_used:
            self._move(max(self.guess, self._probing()), now_ns)

    def _suspect(self, distance: float, at_ns: int, now_ns: int) -> None:
        while self._suspects and self._suspects[0][0] < at_ns - self.SUSPECT_NS:
            self._suspects.popleft()
        self._suspects.append((at_ns, distance))
        if len(self._suspects) < self.SUSPECTS:
            return
        since = min(at for at, _ in self._suspects)
        least = min(found for _, found in self._suspects)
        later = [found for at, found in self._hits if at > since and found < least]
        self.shrink(now_ns)
        self._void_ns = since
        self.upper = least
        self.lower = max(later, default=0.0)
        self._move(max(self.lower, min(self.guess, self._careful())), now_ns)

    def _careful(self) -> float:
        """Return a guess below the known miss: not far above what is proven, if anything is."""
        assert self.upper is not None
        if self.lower < self.WIDE * self.upper:
            return 0.95 * self.upper
        return self.lower + self.CARE * (self.upper - self.lower)

    def _probing(self) -> float:
        """Return a guess that makes the bracket narrower, if it is worth it."""
        assert self.upper is not None
        if self.upper - self.lower <= self.NARROW * self.upper:
            return self._careful()
        return min(0.5 * (self.lower + self.upper), self.STEP * self.lower)

    def _move(self, guess: float, now_ns: int) -> None:
        if self._most is not None:
            guess = min(guess, self._most)
        if guess != self.guess:
            self.guess = guess
            self._moved_ns = now_ns
