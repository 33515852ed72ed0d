# SPDX-License-Identifier: Apache-2.0
"""The gateway put together, in one event loop."""

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

from xinfer_ros.brain.controller import Controller
from xinfer_ros.brain.gateway.access import Access, read_token
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.bells import Bells
from xinfer_ros.brain.gateway.episode import Outcome
from xinfer_ros.brain.gateway.gate import Gate
from xinfer_ros.brain.gateway.pages import Pages, Tally
from xinfer_ros.brain.gateway.proxy import Proxy
from xinfer_ros.brain.gateway.reply import error_body
from xinfer_ros.brain.gateway.routes import EpisodeRoutes
from xinfer_ros.brain.gateway.upstreams import Upstreams
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError

MOST_CONNECTIONS = 1000
IDLE_S = 3.0  # vLLM closes a connection that has been idle for 5 s, and a call must not meet that
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


def notice_death(connection: socket.socket) -> None:
    """
    Let a connection end half a minute after its other end has died, a minute if data wait.

    By itself it would last for hours, and with it the calls of a robot whose power has failed.
    """
    for option, value in (
        (socket.TCP_KEEPIDLE, 15),
        (socket.TCP_KEEPINTVL, 5),
        (socket.TCP_KEEPCNT, 3),
        (socket.TCP_USER_TIMEOUT, 60_000),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def allow_many_files() -> None:
    """Let this process have as many open files as it may: each call that waits is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Gateway:
    """
    Serves agents between ``start`` and ``close``, both in its event loop.

    :param config: settings
    :param clock: the steady clock
    :param make: makes the controller of one LLM server
    :param failed: called if it can't go on; its owner must end it
    :raises ConfigError: if a token file can't be read
    """

    def __init__(
        self,
        config: BrainConfig,
        clock: Clock,
        make: Callable[[], Controller],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._failed = failed
        self._config, self._clock = config, clock
        self._token = read_token(config.token_file)
        self._access = Access(config.host, config.public_url, self._token)
        self._upstream_token = read_token(config.upstream_token_file)
        self.bells, self._tally = Bells(), Tally()
        controllers = {url: make() for url in config.upstreams}
        self.admission = Admission(controllers, config.max_episodes, self.bells.ring)
        self.bells.listen(self._tally.note)
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.port = config.port

    async def start(self) -> None:
        """
        Listen.

        :raises ConfigError: if the address is not free
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._config.connect_timeout_s, sock_read=None
        )
        self._session = aiohttp.ClientSession(
            timeout=timeout,
            connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, keepalive_timeout=IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 20,
            headers={'Accept-Encoding': 'identity'},
            auto_decompress=False,  # what is packed nevertheless passes as it is
        )
        self._assemble(self._session)
        allow_many_files()
        runner = web.AppRunner(
            self._application(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0
        )
        await self.upstreams.look_first()
        await runner.setup()
        self._runner = runner
        await self._listen(runner)
        self.routes.base = self._public()
        if self._access.is_open:
            log.warning('other machines get in without a token; set token_file')
        self._keeper = asyncio.ensure_future(self.upstreams.run())
        self._keeper.add_done_callback(self._kept)

    def _assemble(self, session: aiohttp.ClientSession) -> None:
        config, clock, admission = self._config, self._clock, self.admission
        self.upstreams = Upstreams(config, admission, session, clock, self._upstream_token)
        self.gate = Gate(admission, self.bells, config, clock)
        self.routes = EpisodeRoutes(
            admission, self.gate, self.bells, self.upstreams, config, clock
        )
        self.pages = Pages(admission, self.upstreams, self.routes, self._tally, clock)

    async def _listen(self, runner: web.AppRunner) -> None:
        host, port = self._config.host, self._config.port
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            await self.close()
            raise ConfigError(f'can not listen on {host}:{port}: {error.strerror}') from None
        addresses = runner.addresses
        self.port = addresses[0][1] if addresses else port

    def _public(self) -> str:
        if self._config.public_url:
            return self._config.public_url.rstrip('/')
        host = self._config.host
        if host in ('', '0.0.0.0', '::'):
            host = '127.0.0.1'
        return f'http://{f"[{host}]" if ":" in host else host}:{self.port}'

    def _application(self) -> web.Application:
        application = web.Application(
            client_max_size=round(self._config.max_request_mib * 2**20),
            middlewares=[self._guard],
        )
        application.on_response_prepare.append(_sign)
        proxy = Proxy(
            self.admission, self.upstreams, self.gate, self._config, self._clock, self._token
        )
        router = application.router
        router.add_route('*', '/e/{episode}/v1/{endpoint:.+}', proxy.serve)
        router.add_route('*', '/v1/{endpoint:.+}', proxy.serve)
        self.routes.add_to(router)
        self.pages.add_to(router)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the token, and let no answer tell more than it must."""
        refusal = self._access.refusal(request.method, request.path, request.headers)
        if refusal is not None:
            return _plain_error(*refusal)
        connection = request.get_extra_info('socket')
        if connection is not None:
            notice_death(connection)
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            limit = self._config.max_request_mib
            return _plain_error(413, f'the body is larger than max_request_mib, {limit:g} MiB')
        except web.RequestPayloadError:
            return _plain_error(400, 'the body can not be read as its headers say')
        except web.HTTPException as error:
            return _plain_error(error.status, error.reason)
        except ConnectionResetError:
            return web.Response(status=499)  # nobody reads it
        except Exception:
            log.exception('%s %s', request.method, request.path)
            return _plain_error(500, 'the gateway has failed; its log says why')

    def _kept(self, task: 'asyncio.Task[None]') -> None:
        if not task.cancelled() and task.exception() is not None:
            log.critical('the gateway keeps no house any more', exc_info=task.exception())
            self._failed()

    async def close(self) -> None:
        """End every episode and stop listening."""
        now_ns = self._clock.now_ns()
        for episode in self.admission.episodes():
            self.admission.end(episode, Outcome.SHUTDOWN, now_ns)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()


def _plain_error(status: int, text: str) -> web.Response:
    return web.Response(
        body=error_body(text, status), status=status, content_type='application/json'
    )


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    """Name no version of what serves."""
    response.headers['Server'] = 'xinfer'
