# SPDX-License-Identifier: Apache-2.0
"""The answer to an agent: passed on byte for byte, kept alive while it waits, or refused."""

import json
from collections.abc import Mapping

from aiohttp import web
from multidict import CIMultiDict

from xinfer_ros.errors import Reason, Rejected

STATUS = {
    Reason.BRAIN_UNAVAILABLE: 503,
    Reason.NOT_ADMITTED: 429,
    Reason.UNKNOWN_EPISODE: 404,
    Reason.LEASE_EXPIRED: 410,
    Reason.SHUTDOWN: 503,
}
SSE = 'text/event-stream'
JSON = 'application/json'
_ERROR_EVENT = b'event: error\ndata: '
# of one connection and not of the answer, or set anew
_HOP = {
    'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer',
    'transfer-encoding', 'upgrade', 'date', 'server',
}  # fmt: skip


# the next try of an agent that is not told more [s]
_RETRY_S = {Reason.NOT_ADMITTED: 5, Reason.BRAIN_UNAVAILABLE: 1}


class AgentGone(ConnectionResetError):
    """The agent has closed its connection."""


class Refused(Rejected):
    """
    A refusal with what its headers say.

    :param retry_after_s: when to ask again, None: it does not help [s]
    :param position: place in the line, None: none
    :param episode: whose refusal it is, empty: of none
    """

    def __init__(
        self,
        reason: Reason,
        detail: str,
        *,
        retry_after_s: int | None = None,
        position: int | None = None,
        episode: str = '',
    ) -> None:
        super().__init__(reason, detail)
        self.retry_after_s, self.position, self.episode = retry_after_s, position, episode

    def headers(self) -> dict[str, str]:
        """Return the headers that go with it."""
        found = {}
        if self.retry_after_s is not None:
            found['Retry-After'] = str(self.retry_after_s)
        if self.position is not None:
            found['X-Queue-Position'] = str(self.position)
        if self.episode:
            found['X-Session-ID'] = self.episode
        return found


def error_body(text: str, status: int, code: str | None = None, **more: object) -> bytes:
    """Return an error in the form that clients of OpenAI's and Anthropic's interfaces show."""
    kind = 'server_error' if status >= 500 else 'invalid_request_error'
    kind = 'rate_limit_error' if status == 429 else kind
    facts = {'message': text, 'type': kind, 'param': None, 'code': code, **more}
    return json.dumps({'type': 'error', 'error': facts}).encode()


def _body(refusal: Rejected, status: int) -> bytes:
    more: dict[str, object] = {}
    if isinstance(refusal, Refused):
        if refusal.position is not None:
            more['queue_position'] = refusal.position
        if refusal.episode:
            more['episode'] = refusal.episode
    return error_body(str(refusal), status, refusal.reason.name, **more)


def refusal_response(refusal: Rejected, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a refusal as an answer of its own."""
    status = STATUS.get(refusal.reason, 400)
    retry_s = _RETRY_S.get(refusal.reason)
    own = {} if retry_s is None else {'Retry-After': str(retry_s)}
    if isinstance(refusal, Refused):
        own |= refusal.headers()
    return web.Response(
        body=_body(refusal, status),
        status=status,
        content_type=JSON,
        headers={**(headers or {}), **own},
    )


def _is_between_events(last: bytes) -> bool:
    return last.replace(b'\r\n', b'\n').endswith(b'\n\n')


class Reply:
    """
    One answer on its way to the agent.

    :param request: of the agent
    :param streams: whether the agent takes server-sent events
    :param headers: that every answer has
    """

    def __init__(self, request: web.Request, *, streams: bool, headers: Mapping[str, str]) -> None:
        self._request, self._streams, self._headers = request, streams, dict(headers)
        self._response: web.StreamResponse | None = None
        self._kept_alive = False
        self._failed = False
        self._status = 0  # of the LLM server, 0: none yet
        self._last = b'\n\n'  # bytes of what has left

    @property
    def failed(self) -> bool:
        """Return whether the LLM server has answered with an error."""
        return self._status != 200

    @property
    def request_id(self) -> str:
        """Return the id of the request, the agent's own if it has one."""
        return self._headers['X-Request-Id']

    async def keep_alive(self, word: str) -> None:
        """Send something that every reader of the answer skips: a comment, or a blank."""
        if self._response is None:
            kind = SSE if self._streams else JSON
            await self._begin(200, {'Content-Type': kind, 'Cache-Control': 'no-cache'}, None)
            self._kept_alive = True
        line = f': {word}\n\n'.encode() if self._streams else b' '
        await self._send(line)

    async def begin(self, status: int, headers: Mapping[str, str], *, exact: bool) -> None:
        """
        Begin to pass an answer on; after signs of life its status and headers are lost.

        :param exact: whether its length stays as it is
        """
        self._status = status
        if self._response is not None:
            self._failed = status != 200
            if self._failed and self._streams:
                await self._send(_ERROR_EVENT)
            return
        length = headers.get('Content-Length') if exact else None
        await self._begin(status, headers, length)

    async def _begin(self, status: int, headers: Mapping[str, str], length: str | None) -> None:
        kept = CIMultiDict(
            (key, value)
            for key, value in headers.items()
            if key.lower() not in _HOP and key.lower() != 'content-length'
        )
        response = web.StreamResponse(status=status)
        response.headers.update(self._headers)
        response.headers.update(kept)
        if length is not None:
            response.content_length = int(length)
        self._response = response
        try:
            await response.prepare(self._request)
        except ConnectionResetError as error:
            raise AgentGone from error

    async def write(self, data: bytes) -> None:
        """Pass some bytes on; an error after signs of life becomes one event."""
        if self._failed and self._streams:
            data = data.replace(b'\n', b' ')
        await self._send(data)

    async def _send(self, data: bytes) -> None:
        if self._response is None or not data:
            return
        try:
            await self._response.write(data)
        except ConnectionResetError as error:
            raise AgentGone from error
        self._last = (self._last + data)[-4:]

    async def end(self) -> web.StreamResponse:
        """Return the answer, which is complete."""
        assert self._response is not None
        if self._failed and self._streams:
            await self._send(b'\n\n')
        await self._response.write_eof()
        return self._response

    async def refuse(self, refusal: Rejected) -> web.StreamResponse:
        """Return a refusal: with its status, or as the last event of what has begun."""
        if self._response is None:
            return refusal_response(refusal, self._headers)
        text = _body(refusal, STATUS.get(refusal.reason, 400))
        if self._streams and _is_between_events(self._last):
            await self._send(_ERROR_EVENT + text + b'\n\n')
        elif self._kept_alive and not self._status and not self._streams:
            await self._send(text)
        else:  # part of an answer or event has left: the agent must see that it is not whole
            if self._request.transport is not None:
                self._request.transport.abort()
            return self._response
        await self._response.write_eof()
        return self._response
