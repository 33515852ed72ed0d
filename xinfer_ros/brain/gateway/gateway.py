# SPDX-License-Identifier: Apache-2.0
"""The gateway put together, in one event loop."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from aiohttp import web

from xinfer_ros.brain.controller import Controller
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
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_OPEN_PATHS = ('/health',)

log = logging.getLogger(__name__)


def read_token(path: str) -> str:
    """
    Return the token in a file, empty if no file is given.

    :raises ConfigError: if it can't be read or is empty
    """
    if not path:
        return ''
    try:
        token = Path(path).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'token file {path}: can not be read ({type(error).__name__})') from None
    if not token:
        raise ConfigError(f'token file {path} is empty; it must hold the token in its first line')
    return token


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
            connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 20,
        )
        self._assemble(self._session)
        runner = web.AppRunner(
            self._application(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0
        )
        await self.upstreams.look_first()
        await runner.setup()
        self._runner = runner
        await self._listen(runner)
        self.routes.base = self._public()
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
        if self._token and request.path not in _OPEN_PATHS and not self._may_enter(request):
            return _plain_error(401, 'send the token of the gateway as API key')
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            limit = self._config.max_request_mib
            return _plain_error(413, f'the body is larger than max_request_mib, {limit:g} MiB')
        except web.HTTPException as error:
            return _plain_error(error.status, error.reason)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception('%s %s', request.method, request.path)
            return _plain_error(500, 'the gateway has failed; its log says why')

    def _kept(self, task: 'asyncio.Task[None]') -> None:
        if not task.cancelled() and task.exception() is not None:
            log.critical('the gateway keeps no house any more', exc_info=task.exception())
            self._failed()

    def _may_enter(self, request: web.Request) -> bool:
        given = request.headers.get('Authorization', '')
        scheme, _, token = given.partition(' ')
        if scheme.lower() != 'bearer':
            token = request.headers.get('X-Api-Key', '')
        return hmac.compare_digest(token.strip().encode(), self._token.encode())

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
