# SPDX-License-Identifier: Apache-2.0
"""Hits as the signal: more episodes while prefixes survive, fewer when they do not."""

from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.controller import TurnUsage
from xinfer_ros.brain.rule import Indifferent

NS = 1_000_000_000


class AimdHits(Indifferent):
    """
    One episode more each period in which prefixes survived, by a factor fewer in any other.

    It is raised only where it has kept somebody out: else it proves nothing.

    It acts where episodes begin and never parks one, so it is late by an episode's length.

    :param start: number of episodes at the start
    :param least: share of a period's turns that have to find their context
    :param factor: of the number, when too few do
    :param period_ns: between changes [ns]
    """

    name = 'aimd_hits'

    def __init__(
        self, start: int = 8, least: float = 0.95, factor: float = 0.7, period_ns: int = 30 * NS
    ) -> None:
        self.limit: int = start
        self._least = least
        self._factor = factor
        self._period_ns = period_ns
        self._next_ns: int | None = None
        self._hits = self._turns = 0
        self._is_full = False
        self._kept: dict[str, float] = {}

    @property
    def why(self) -> str:
        """Return the figures."""
        return f'at most {self.limit} episodes by the prefixes that survive'

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """Return whether there are fewer than the limit."""
        fits = len(admitted) < self.limit
        self._is_full |= not fits
        return fits

    def turn_started(self, record: Record, kept_share: float, now_ns: int) -> None:
        """Remember how much of the prompt can be cached."""
        self._kept[record.arrival.episode] = kept_share

    def turn_ended(self, record: Record, usage: TurnUsage | None, now_ns: int) -> None:
        """Count a hit or a miss, and change the limit if it is time."""
        kept = self._kept.pop(record.arrival.episode, 1.0)
        if usage is not None and usage.cached_tokens is not None and record.turns:
            self._turns += 1
            self._hits += usage.cached_tokens >= 0.9 * kept * record.tokens
        if self._next_ns is None:
            self._next_ns = now_ns + self._period_ns
        if now_ns < self._next_ns or not self._turns:
            return
        if self._hits < self._least * self._turns:
            self.limit = max(int(self.limit * self._factor), 1)
        else:
            self.limit += self._is_full
        self._hits = self._turns = 0
        self._is_full = False
        self._next_ns = now_ns + self._period_ns

    def ended(self, record: Record, now_ns: int) -> None:
        """Forget an episode."""
        self._kept.pop(record.arrival.episode, None)
