# SPDX-License-Identifier: Apache-2.0
"""The websocket door: a thread of its own, with robots that speak openpi's protocol."""

import asyncio
import contextlib
import hmac
import itertools
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from typing import cast

from aiohttp import web

from xinfer_ros.core.callers import Callers, Listening
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.thread_name import start_thread
from xinfer_ros.engine.answer_router import AnswerRouter
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.errors import Rejected
from xinfer_ros.openpi.answers import Answers
from xinfer_ros.openpi.connection import Connection
from xinfer_ros.openpi.robot_session import RobotSession
from xinfer_ros.openpi.settings import BACKLOG, DoorSettings

CLOSE_S = 1.0
JOIN_S = 10.0
OTHERS = 16  # connections beside those of robots, such as who asks for its health
PINGS_PER_LEASE = 3
# a robot that has lost power says nothing; the kernel notices after this
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 20), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
_HEADERS = {'Server': 'xinfer_ros'}
log = logging.getLogger(__name__)


class WebsocketDoor:
    """
    Open from its construction until ``close``.

    :param settings: who may come in, and what is taken for granted
    :param listening: from ``settings.listen``; closed with the door
    :param front_end: serves the robots
    :param router: told where answers go
    :param clock: the server's monotonic clock
    """

    def __init__(
        self,
        settings: DoorSettings,
        listening: socket.socket,
        front_end: FrontEnd,
        router: AnswerRouter,
        clock: Clock,
    ) -> None:
        self._settings, self._listening = settings, listening
        self._front_end, self._router, self._clock = front_end, router, clock
        self._names = (f'websocket_{number}' for number in itertools.count(1))
        self._connections: set[Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._begun = threading.Event()
        self._thread = start_thread('websocket', self._run)

    def close(self) -> None:
        """Close every connection and end the thread."""
        self._begun.wait(JOIN_S)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(JOIN_S)

    # The door's thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:
            log.exception('the websocket door has closed; robots over ROS are served on')
        finally:
            self._begun.set()
            self._listening.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        app = web.Application()
        app.router.add_get('/healthz', self._health)
        app.router.add_get('/{path:.*}', self._connect)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=CLOSE_S,
            keepalive_timeout=CLOSE_S,
        )  # fmt: skip
        most = self._settings.max_robots + OTHERS
        callers = Callers(lambda: cast(Listening, runner.server), most, self._clock)
        app.on_response_prepare.append(callers.heard)
        await runner.setup()
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(callers, sock=self._listening, backlog=BACKLOG)
        try:
            interval_s = self._front_end.lease_ns / 1e9 / PINGS_PER_LEASE
            while not self._closing.is_set():
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), interval_s)
                await asyncio.gather(*(each.ping() for each in tuple(self._connections)))
        finally:
            listening.close()
            await asyncio.gather(*(each.end() for each in tuple(self._connections)))
            await runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        """Say whether robots are served now."""
        try:
            self._front_end.contract()
        except Rejected as refusal:
            return _told(503, str(refusal))
        return _told(200, 'OK')

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        refused = self._refusal(request)
        if refused is not None:
            return refused
        response = web.WebSocketResponse(
            timeout=CLOSE_S,
            autoping=False,
            compress=False,
            max_msg_size=2 * self._settings.max_bytes,
        )
        if not response.can_prepare(request).ok:
            return _told(426, "a websocket is needed: this port speaks openpi's protocol")
        response.headers.update(_HEADERS)
        await response.prepare(request)
        _keep_alive(request)
        robot_id = request.query.get('robot_id') or next(self._names)
        connection = Connection(
            response,
            lambda make_outlet: self._session(robot_id, make_outlet),
            lambda: self._front_end.status().epoch,
            self._settings.max_bytes,
            self._front_end.lease_ns / 1e9,
            self._clock,
        )
        self._connections.add(connection)
        try:
            if not await connection.run() and request.transport is not None:
                request.transport.abort()
        finally:
            self._connections.discard(connection)
        return response

    def _session(self, robot_id: str, make_outlet: Callable[[], Answers]) -> RobotSession:
        return RobotSession(
            self._settings,
            self._front_end,
            self._router,
            self._clock,
            robot_id,
            secrets.randbits(62),
            make_outlet,
        )

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return why somebody may not come in, None if they may."""
        token = self._settings.token
        given = request.headers.get('Authorization', '')
        if token and not hmac.compare_digest(_bytes(given), _bytes(f'Api-Key {token}')):
            return _told(401, 'the token of this server is needed: give it as api_key')
        if 'Origin' in request.headers:  # robots send none, and a page must not drive them
            return _told(403, 'web pages are not served')
        if len(self._connections) >= self._settings.max_robots:
            return _told(503, f'{len(self._connections)} robots are connected; websocket_robots '
                         f'is {self._settings.max_robots}')  # fmt: skip
        return None


def _told(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f'{text}\n', headers=_HEADERS)


def _bytes(text: str) -> bytes:
    return text.encode('utf-8', 'surrogateescape')  # as aiohttp has read a header


def _keep_alive(request: web.Request) -> None:
    connected = request.transport.get_extra_info('socket') if request.transport else None
    if connected is not None:
        for option, value in _KEEP_ALIVE:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
