# SPDX-License-Identifier: Apache-2.0
"""What differs between controllers: when one more episode may come, and when one has to go."""

from collections.abc import Callable, Sequence
from typing import Protocol

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.controller import Gauges, TurnUsage


class Rule(Protocol):
    """Decides on numbers; who is next and who is parked is decided by the book."""

    @property
    def name(self) -> str:
        """Return the controller's name."""
        ...

    @property
    def limit(self) -> int | None:
        """Return the largest number of episodes admitted, None if the number is not limited."""
        ...

    @property
    def estimate_tokens(self) -> int | None:
        """Return the estimated capacity of the cache, None if it is not estimated [tokens]."""
        ...

    @property
    def why(self) -> str:
        """Return the figures behind the last answer, a part of a sentence."""
        ...

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """Return whether one more may come beside those that are admitted."""
        ...

    def overshoots(self, staying: Sequence[Record], now_ns: int) -> bool:
        """Return whether one of those that stay, the draining ones not among them, must go."""
        ...

    def parked_first(self, staying: Sequence[Record], now_ns: int) -> Record:
        """Return which of those that stay is parked, if one has to be."""
        ...

    def order(self, now_ns: int) -> Callable[[Record], int] | None:
        """Return the class in line of those that wait, least first; None for parked, then new."""
        ...

    def turn_started(self, record: Record, kept_share: float, now_ns: int) -> None:
        """Take note of a call that goes to the server."""
        ...

    def turn_answering(self, record: Record, now_ns: int) -> None:
        """Take note of the first token of an answer."""
        ...

    def turn_ended(self, record: Record, usage: TurnUsage | None, now_ns: int) -> None:
        """Take note of the end of a call; the record's context is still the one before it."""
        ...

    def turn_refused(self, record: Record, now_ns: int) -> None:
        """Take note that the server has refused a call: it has computed nothing."""
        ...

    def ended(self, record: Record, now_ns: int) -> None:
        """Take note of the end of an episode."""
        ...

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Take note of the server's metrics, None if they can't be read."""
        ...


class Indifferent:
    """The part of a rule that takes no note of anything."""

    limit: int | None = None
    estimate_tokens: int | None = None

    def overshoots(self, staying: Sequence[Record], now_ns: int) -> bool:
        """Return False: nobody is parked."""
        return False

    def parked_first(self, staying: Sequence[Record], now_ns: int) -> Record:
        """Return the youngest: its context costs least to compute again."""
        return max(staying, key=lambda record: record.admission)

    def order(self, now_ns: int) -> Callable[[Record], int] | None:
        """Return None: those parked, then new ones."""
        return None

    def turn_started(self, record: Record, kept_share: float, now_ns: int) -> None:
        """Ignore it."""

    def turn_answering(self, record: Record, now_ns: int) -> None:
        """Ignore it."""

    def turn_ended(self, record: Record, usage: TurnUsage | None, now_ns: int) -> None:
        """Ignore it."""

    def turn_refused(self, record: Record, now_ns: int) -> None:
        """Ignore it."""

    def ended(self, record: Record, now_ns: int) -> None:
        """Ignore it."""

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Ignore it."""
