# SPDX-License-Identifier: Apache-2.0
"""Waiting for an episode to change, by event and not by looking again."""

import asyncio
from collections.abc import Callable

from xinfer_ros.brain.gateway.episode import Episode
from xinfer_ros.brain.gateway.patience import until_set


class Bells:
    """Rings for everybody that waits for an episode; belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}
        self._listeners: list[Callable[[Episode], None]] = []

    def listen(self, listener: Callable[[Episode], None]) -> None:
        """Call somebody at each change of any episode."""
        self._listeners.append(listener)

    def ring(self, episode: Episode) -> None:
        """Wake whoever waits for an episode."""
        event = self._events.pop(episode.id, None)
        if event is not None:
            event.set()
        for listener in self._listeners:
            listener(episode)

    async def wait(self, episode: Episode, seconds: float | None) -> None:
        """Wait until an episode changes, at most so long [s]; None: as long as it takes."""
        event = self._events.setdefault(episode.id, asyncio.Event())
        await until_set(event, seconds)
