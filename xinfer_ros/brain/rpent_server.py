# SPDX-License-Identifier: Apache-2.0
"""Serves RPent's VLA endpoint by HTTP."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from xinfer_ros.brain.gateway.access import Access
from xinfer_ros.brain.rpent import Prediction, Rows, answer, read_call, read_predict
from xinfer_ros.errors import ConfigError, Reason, Rejected

MOST_BYTES = 64 << 20
Predict = Callable[[Prediction], Awaitable[Rows]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


class RpentServer:
    """
    ``POST /call`` as RPent's RPC, ``POST /predict`` and ``GET /healthz`` as its first version.

    RPent sends no token, so nobody is asked for one; but a web page has no access.

    :param predict: computes a chunk; it raises Rejected if there is none
    """

    def __init__(self, predict: Predict) -> None:
        self._predict = predict
        self._access = Access('127.0.0.1', '', '')
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """
        Listen.

        :param port: 0: any that is free
        :raises ConfigError: if the address is not free
        """
        self._access = Access(host, '', '')
        if self._access.is_open:
            log.warning('other machines reach the VLA endpoint, which can ask for no token')
        application = web.Application(client_max_size=MOST_BYTES, middlewares=[self._guard])
        application.router.add_post('/call', self._call)
        application.router.add_post('/predict', self._plain)
        application.router.add_get('/healthz', self._health)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=0.5
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            raise ConfigError(
                f'the VLA endpoint can not listen on {host}:{port}: {error.strerror}'
            ) from None
        self.port = self._runner.addresses[0][1]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._access.refusal(request.method, request.path, request.headers)
        if refusal is not None:
            status, text = refusal
            return web.json_response({'ok': False, 'error': text}, status=status)
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            text = f'the body is larger than {MOST_BYTES >> 20} MiB'
            return web.json_response({'ok': False, 'error': text}, status=413)

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({'status': 'ok'})

    async def _call(self, request: web.Request) -> web.Response:
        """Answer an RPC; its failures are told in the body, as RPent expects."""
        try:
            call = read_call(_json(await request.read()))
            result: Any = {'status': 'ok'} if call is None else await self._result(call)
        except Rejected as refusal:
            return web.json_response({'ok': False, 'error': str(refusal)})
        return web.json_response({'ok': True, 'result': result})

    async def _plain(self, request: web.Request) -> web.Response:
        try:
            return web.json_response(await self._result(read_predict(_json(await request.read()))))
        except Rejected as refusal:
            return web.json_response({'error': str(refusal)}, status=503)

    async def _result(self, call: Prediction) -> dict[str, Any]:
        try:
            return answer(call, await self._predict(call))
        except Rejected as refusal:
            log.warning('RPent gets no chunk: %s', refusal)
            raise


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Rejected(Reason.REJECTED_EPISODE, 'the body is no JSON') from None
