# SPDX-License-Identifier: Apache-2.0
"""What the HTTP server answers: page, events, snapshot, metrics, health."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.observe.http_access import CHALLENGE, SECURITY_HEADERS, HttpAccess
from xinfer_ros.observe.page_feed import PageFeed
from xinfer_ros.observe.page_files import PageFile, page_files

if TYPE_CHECKING:
    from xinfer_ros.observe.http_server import HttpSettings

OPEN_TO_ALL = ('/metrics', '/healthz')
METRICS_KIND = 'text/plain; version=0.0.4; charset=utf-8'
SEND_S = 5.0
NO_PAGE = (
    'The live page is off: this server listens beyond its own machine and has no http_token. '
    '/metrics and /healthz are served.\n'
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = logging.getLogger(__name__)


class Guard:
    """
    Stands before every route: who may see it, and that no answer tells of the inside.

    :param access: who may see what
    """

    def __init__(self, access: HttpAccess) -> None:
        self._access = access

    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of every answer."""
        response.headers.update(SECURITY_HEADERS)

    def refusal(self, request: web.Request) -> web.Response | None:
        """Return the answer to somebody who may not see what he asks for."""
        access, headers = self._access, request.headers
        if not access.knows_host(headers.get('Host', '')):
            return web.Response(status=421, text='This server is not the host you asked for.\n')
        if request.path in OPEN_TO_ALL:
            return None
        if not access.shows_page:
            return web.Response(status=403, text=NO_PAGE)
        if not access.knows_site(headers):
            return web.Response(status=403, text='Asked for by another site.\n')
        if not access.is_authorized(headers.get('Authorization', '')):
            return web.Response(status=401, headers=CHALLENGE, text='The http_token is needed.\n')
        return None

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse, or answer; a fault of ours is in the log alone."""
        refused = self.refusal(request)
        if refused is not None:
            return refused
        try:
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=f'{error.reason}\n')
        except ConnectionError:
            raise
        except Exception:
            log.exception('%s could not be answered', request.path)
            return web.Response(status=500, text='A fault of the server; its log has it.\n')


class Routes:
    """
    The routes.

    :param files: of the page, by path
    :param max_watchers: pages that may be open at once
    """

    def __init__(
        self,
        files: Mapping[str, PageFile],
        max_watchers: int,
        feed: PageFeed,
        metrics: Callable[[int], bytes],
        clock: Clock,
    ) -> None:
        self._files, self._max_watchers = files, max_watchers
        self._feed, self._metrics, self._clock = feed, metrics, clock

    async def file(self, request: web.Request) -> web.Response:
        """Answer with a file of the page."""
        found = self._files.get(request.path)
        if found is None:
            raise web.HTTPNotFound
        return web.Response(body=found.content, content_type=found.kind, charset='utf-8')

    async def metrics(self, request: web.Request) -> web.Response:
        """Answer with the numbers for Prometheus."""
        text = self._metrics(self._clock.now_ns())
        return web.Response(body=text, headers={'Content-Type': METRICS_KIND})

    async def health(self, request: web.Request) -> web.Response:
        """Answer 200 while robots are served, else 503."""
        phase = self._feed.sample().state
        status = 200 if phase is ServerPhase.READY else 503
        return web.Response(status=status, text=f'{phase.name}\n')

    async def snapshot(self, request: web.Request) -> web.Response:
        """Answer with what the page shows at this moment."""
        return web.Response(body=self._feed.snapshot(), content_type='application/json')

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send the whole and then updates, as server-sent events, until the page closes."""
        if self._feed.watchers >= self._max_watchers:
            words = f'{self._max_watchers} pages are open, http_watchers allows no more.\n'
            return web.Response(status=503, text=words)
        response = web.StreamResponse(headers={'Content-Type': 'text/event-stream'})
        with self._feed.watching():
            await response.prepare(request)
            try:
                await self._send(response)
            except ConnectionError:
                pass
            except asyncio.TimeoutError:  # it takes nothing any more, not even a goodbye
                if request.transport is not None:
                    request.transport.abort()
            except Exception:
                log.exception('a live page gets no more')
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        async with contextlib.aclosing(self._feed.updates()) as updates:
            async for data in updates:
                await asyncio.wait_for(response.write(b'data:' + data + b'\n\n'), SEND_S)


def application(
    access: HttpAccess,
    settings: 'HttpSettings',
    feed: PageFeed,
    metrics: Callable[[int], bytes],
    clock: Clock,
) -> web.Application:
    """
    Return the application.

    :raises ConfigError: if the page's files are not there
    """
    guard = Guard(access)
    files = page_files(settings.page)
    routes = Routes(files, settings.max_watchers, feed, metrics, clock)
    app = web.Application(middlewares=[web.middleware(guard)], client_max_size=1024)
    app.on_response_prepare.append(guard.headers)
    app.router.add_get('/events', routes.events, allow_head=False)
    app.router.add_get('/snapshot.json', routes.snapshot, allow_head=False)
    app.router.add_get('/metrics', routes.metrics)
    app.router.add_get('/healthz', routes.health)
    app.router.add_get('/{path:.*}', routes.file)
    return app
