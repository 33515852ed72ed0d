# SPDX-License-Identifier: Apache-2.0
"""Who is connected to a port of ours: so many at once, and nobody who only keeps a place."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from xinfer_ros.core.clock import Clock

SILENT_NS = 5_000_000_000


class Caller(Protocol):
    """A connection."""

    def force_close(self) -> None:
        """End it."""
        ...


class Asked(Protocol):
    """What a caller asks; aiohttp.web.Request."""

    @property
    def protocol(self) -> Caller:
        """Return who has asked."""
        ...


class Listening(Protocol):
    """What makes the connections of a port; aiohttp.web.Server."""

    @property
    def connections(self) -> Sequence[Caller]:
        """Return those that are open."""
        ...

    def __call__(self) -> Caller:
        """Return what handles a new one."""
        ...


class Callers:
    """
    Makes the protocol of each new connection, for ``create_server``; in one event loop.

    A process has only so many open files, and a caller takes one before it has asked for
    anything. When the port is full, those that have asked for nothing for a while have to go.

    :param listening: returns what makes connections
    :param most: connections at once
    :param clock: a steady clock
    """

    def __init__(self, listening: Callable[[], Listening], most: int, clock: Clock) -> None:
        self._listening, self._most, self._clock = listening, most, clock
        self._silent_ns: dict[Caller, int] = {}  # since when

    def __call__(self) -> asyncio.BaseProtocol:
        """Return what handles a new connection, which may be that it is closed."""
        listening, now_ns = self._listening(), self._clock.now_ns()
        present = listening.connections
        if len(present) >= self._most:
            for caller in present:
                if now_ns - self._silent_ns.get(caller, now_ns) > SILENT_NS:
                    caller.force_close()
            return _Closed()
        self._silent_ns = {
            caller: since_ns
            for caller, since_ns in self._silent_ns.items()
            if caller in present or now_ns - since_ns < SILENT_NS
        }
        caller = listening()
        self._silent_ns[caller] = now_ns
        return cast(asyncio.BaseProtocol, caller)

    async def heard(self, request: Asked, response: object) -> None:
        """Take in that a caller has asked for something; a signal of aiohttp."""
        self._silent_ns.pop(request.protocol, None)


class _Closed(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it at once."""
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
