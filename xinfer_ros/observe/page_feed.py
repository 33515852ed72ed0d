# SPDX-License-Identifier: Apache-2.0
"""Feeds every open page with the same data, twice a second, while there is one."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol

from xinfer_ros.core.clock import Clock
from xinfer_ros.observe.fleet_history import FleetHistory
from xinfer_ros.observe.fleet_status import FleetStatus
from xinfer_ros.observe.page_data import as_json, page_data
from xinfer_ros.observe.timeline import Timeline

UPDATE_S = 0.5
OPENING_NS = 12_000_000_000  # what a page that has just been opened shows of the lanes
OVERLAP_NS = 1_500_000_000  # so that a unit that ends late, or an update left out, loses nothing


class FleetSource(Protocol):
    """What the page is made of; observe.fleet_view.FleetView."""

    def status(self, now_ns: int) -> FleetStatus:
        """Return how the fleet is served."""
        ...

    def timeline(self, since_ns: int, now_ns: int) -> Timeline:
        """Return what the lanes did."""
        ...


class PageFeed:
    """
    Makes the data of an update once, however many pages are open. For one event loop.

    :param source: the fleet
    :param clock: the server's monotonic clock
    :param watch: told True when the first page opens, False when the last one closes
    """

    def __init__(self, source: FleetSource, clock: Clock, watch: Callable[[bool], None]) -> None:
        self._source, self._clock, self._watch = source, clock, watch
        self._history = FleetHistory()
        self._watchers = 0
        self._tick, self._update = 0, b''
        self._ended = False

    @property
    def watchers(self) -> int:
        """Return how many pages are open."""
        return self._watchers

    def sample(self) -> FleetStatus:
        """Keep a point of the history, one a second at most; return the status."""
        now_ns = self._clock.now_ns()
        status = self._source.status(now_ns)
        self._history.take(status, now_ns)
        return status

    def snapshot(self, back_ns: int = OPENING_NS, *, whole: bool = True) -> bytes:
        """
        Return the present data as JSON.

        :param back_ns: how far the timeline goes back [ns]
        :param whole: with the history
        """
        status, now_ns = self.sample(), self._clock.now_ns()
        timeline = self._source.timeline(now_ns - back_ns, now_ns)
        points = self._history.points() if whole else ()
        return as_json(page_data(now_ns, status, timeline, points))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count a page from its opening to its end."""
        self._watchers += 1
        try:
            if self._watchers == 1:
                self._watch(True)
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._watch(False)

    def end(self) -> None:
        """Let every page's updates end in order within ``UPDATE_S``."""
        self._ended = True

    async def updates(self) -> AsyncGenerator[bytes, None]:
        """Yield the whole, then what is new; pages wake together and share what is made."""
        yield self.snapshot()
        loop = asyncio.get_running_loop()
        while not self._ended:
            await asyncio.sleep(UPDATE_S - loop.time() % UPDATE_S)
            tick = round(loop.time() / UPDATE_S)
            if tick != self._tick:
                self._tick, self._update = tick, self.snapshot(OVERLAP_NS, whole=False)
            yield self._update
