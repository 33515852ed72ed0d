# SPDX-License-Identifier: Apache-2.0
"""An LLM server that answers as a test wants it to."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from .virtual_time import VirtualLoop

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def event(facts: Any, end: bytes = b'\n\n') -> bytes:
    """Return facts as an event of a stream."""
    return b'data: ' + json.dumps(facts).encode() + end


async def passes(seconds: float) -> None:
    """Let virtual time pass [s]."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    await loop.lives(seconds)


async def stream_of(request: web.Request) -> web.StreamResponse:
    """Return the beginning of a stream, whose connection is not used again."""
    headers = {'Content-Type': 'text/event-stream', 'Connection': 'close'}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    return response


class Stub:
    """
    A server on 127.0.0.1.

    :param handler: answers every request; may be replaced at any time
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[web.Request] = []
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Return its address."""
        return f'http://127.0.0.1:{self.port}'

    async def start(self) -> None:
        """Listen, on the same port as before if it did."""
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route('*', '/{path:.*}', self._answer)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, '127.0.0.1', self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self.handler(request)

    async def take_no_more(self) -> None:
        """Accept no connection any more; what is under way goes on."""
        assert self._site is not None
        await self._site.stop()

    async def close(self) -> None:
        """Stop, whatever is under way."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
