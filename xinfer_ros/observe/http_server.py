# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of live page and metrics: a thread of its own beside the front end."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xinfer_ros.core.callers import Callers, Listening
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.thread_name import start_thread
from xinfer_ros.errors import ConfigError
from xinfer_ros.observe.http_access import HttpAccess
from xinfer_ros.observe.page_feed import FleetSource, PageFeed

if TYPE_CHECKING:
    from aiohttp import web

SAMPLE_S = 2.0  # while nobody looks; a status takes milliseconds
GOODBYE_S = 1.0  # for pages to be told that this was all
JOIN_S = 5.0
KEEP_S = 15.0  # a connection whose question was answered
OTHERS = 32  # connections beside those of open pages
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """
    Settings of the HTTP server; see config.ServerConfig.

    :param port: 0: any free one
    :param max_watchers: pages that may be open at once
    :param page: folder of the page's files
    """

    host: str
    port: int
    token: str
    max_watchers: int
    page: Path


class HttpServer:
    """
    Serves from its construction until ``close``. If the port is taken it says so, and no more.

    :param settings: where it listens, and who may see what
    :param source: the fleet; called by the server's thread
    :param metrics: text for Prometheus, given the time [ns]; called by the server's thread
    :param clock: the server's monotonic clock
    :param watch: told whether any page is open; called by the server's thread
    """

    def __init__(
        self,
        settings: HttpSettings,
        source: FleetSource,
        metrics: Callable[[int], bytes],
        clock: Clock,
        watch: Callable[[bool], None],
    ) -> None:
        self._settings, self._metrics, self._clock = settings, metrics, clock
        self._feed = PageFeed(source, clock, watch)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._closing = threading.Event()
        self._settled = threading.Event()
        self._port: int | None = None
        self._thread = start_thread('http', self._run)

    def url(self) -> str | None:
        """Return where the page is, None if there is none; waits until that is known."""
        self._settled.wait()
        host = self._settings.host
        host = f'[{host}]' if ':' in host else host
        return None if self._port is None else f'http://{host}:{self._port}/'

    def close(self) -> None:
        """End every connection and the thread."""
        self._closing.set()
        self._settled.wait()
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(JOIN_S)

    # The server's thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except (ConfigError, ModuleNotFoundError) as error:
            log.warning('no live page and no metrics: %s. Robots are served all the same', error)
        except Exception:
            log.exception('the live page and the metrics have ended; robots are served on')
        finally:
            self._settled.set()

    async def _serve(self) -> None:
        from xinfer_ros.observe.http_routes import application

        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        access = HttpAccess(host=self._settings.host, token=self._settings.token)
        app = application(access, self._settings, self._feed, self._metrics, self._clock)
        async with self._listening(app) as is_listening:
            self._settled.set()
            if is_listening:
                what = 'live page' if access.shows_page else 'metrics (no page: no http_token)'
                log.info('%s at %s', what, self.url())
            if not is_listening or self._closing.is_set():
                return
            while not self._stop.is_set():
                self._feed.sample()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), SAMPLE_S)

    @contextlib.asynccontextmanager
    async def _listening(self, app: 'web.Application') -> AsyncIterator[bool]:
        from aiohttp import web

        settings = self._settings
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=GOODBYE_S,
            keepalive_timeout=KEEP_S,
        )  # fmt: skip
        most = settings.max_watchers + OTHERS
        callers = Callers(lambda: cast(Listening, runner.server), most, self._clock)
        app.on_response_prepare.append(callers.heard)
        await runner.setup()
        listening: asyncio.Server | None = None
        try:
            try:
                listening = await asyncio.get_running_loop().create_server(
                    callers, settings.host, settings.port, backlog=16
                )
                self._port = listening.sockets[0].getsockname()[1]
            except OSError as error:
                why = (error.strerror or str(error)).rpartition(': ')[2]
                log.warning(
                    'no live page and no metrics at %s:%d: %s; set http_host or http_port, or '
                    'http_port=0 to have none. Robots are served all the same',
                    settings.host, settings.port, why,
                )  # fmt: skip
            yield self._port is not None
        finally:
            self._feed.end()
            if listening is not None:
                listening.close()
            await runner.cleanup()
