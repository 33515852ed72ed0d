# SPDX-License-Identifier: Apache-2.0
"""The time after a loss of capacity, in which lost contexts are computed again one by one."""

from collections.abc import Callable, Sequence

from xinfer_ros.brain.book import Record

CACHED, LOST, NEW, LOST_LATER = range(4)  # in line meanwhile
IsLost = Callable[[Record], bool]


class Renewal:
    """
    Says who comes back first, so that what is still cached stays so.

    To compute several lost contexts at once would push out those that are in use. So one at a
    time is let in, then the others get on for a while; new episodes, which are small, come
    meanwhile.

    :param settle_ns: how long it lasts [ns]
    :param renew_ns: from one lost context to the next [ns]
    """

    def __init__(self, settle_ns: int, renew_ns: int) -> None:
        self._settle_ns = settle_ns
        self._renew_ns = renew_ns
        self._until_ns = 0
        self._next_ns = 0

    def begin(self, now_ns: int) -> None:
        """Take note that the cache has become smaller."""
        self._until_ns = now_ns + self._settle_ns

    def is_on(self, now_ns: int) -> bool:
        """Return whether that was a short time ago."""
        return now_ns < self._until_ns

    def renewed(self, now_ns: int) -> None:
        """Take note of a call whose context is lost."""
        self._next_ns = now_ns + self._renew_ns

    def bars(
        self, admitted: Sequence[Record], candidate: Record, is_lost: IsLost, now_ns: int
    ) -> bool:
        """Return whether an episode has to wait because another one is computed again."""
        if not self.is_on(now_ns) or not is_lost(candidate):
            return False
        return now_ns < self._next_ns or any(map(is_lost, admitted))

    def order(self, is_lost: IsLost, now_ns: int) -> Callable[[Record], int] | None:
        """Return the class in line of an episode, least first; None in quiet times."""
        if not self.is_on(now_ns):
            return None
        lost = LOST_LATER if now_ns < self._next_ns else LOST
        return lambda record: (lost if is_lost(record) else CACHED) if record.turns else NEW
