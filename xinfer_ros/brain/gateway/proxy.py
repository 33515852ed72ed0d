# SPDX-License-Identifier: Apache-2.0
"""Passes the calls of agents on to the LLM server of their episode."""

import asyncio
import secrets
from collections.abc import Mapping

import aiohttp
from aiohttp import web

from xinfer_ros.brain.controller import TurnUsage
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.call import Call, is_served, read_call
from xinfer_ros.brain.gateway.episode import Ending, Episode
from xinfer_ros.brain.gateway.gate import Gate, seconds_ns
from xinfer_ros.brain.gateway.reply import SSE, Refused, Reply
from xinfer_ros.brain.gateway.upstream import NO_CONNECTION, Upstream
from xinfer_ros.brain.gateway.upstreams import Upstreams
from xinfer_ros.brain.gateway.usage import UsageFilter, UsageReader
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason, Rejected

# set anew for the LLM server, or of one connection alone
_OURS = {
    'host', 'content-length', 'content-encoding', 'accept-encoding', 'connection', 'keep-alive',
    'te', 'trailer', 'proxy-authorization', 'proxy-connection', 'transfer-encoding', 'upgrade',
    'expect', 'cookie', 'x-session-id', 'x-request-id', 'x-robot-id',
}  # fmt: skip
_KEYS = ('authorization', 'x-api-key')


class Proxy:
    """
    Serves ``/e/<episode>/v1/…`` and ``/v1/…`` with ``X-Session-ID``.

    :param admission: of the gateway
    :param upstreams: the LLM servers
    :param gate: holds turns
    :param config: settings
    :param clock: the steady clock
    :param token: of the gateway, which is not passed on; empty: none
    """

    def __init__(
        self,
        admission: Admission,
        upstreams: Upstreams,
        gate: Gate,
        config: BrainConfig,
        clock: Clock,
        token: str,
    ) -> None:
        self._admission, self._upstreams, self._gate = admission, upstreams, gate
        self._config, self._clock, self._token = config, clock, token

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a call of an agent."""
        headers = {'X-Request-Id': request.headers.get('X-Request-Id') or secrets.token_hex(8)}
        reply = Reply(request, streams=False, headers=headers)
        try:
            endpoint = request.match_info['endpoint'].rstrip('/')
            if not is_served(endpoint):
                raise Refused(Reason.UNKNOWN_EPISODE, f'/v1/{endpoint[:80]} is not served here')
            body = await request.read()
            call = read_call(request.method, endpoint, body, ask_usage=self._config.ask_usage)
            named = self._named(request, call)
            if not call.is_turn:
                return await self._aside(request, call, named, reply)
            episode = self._episode(request, named)
            reply = Reply(
                request, streams=call.streams, headers={**headers, 'X-Session-ID': episode.id}
            )
            return await self._turn(request, call, episode, reply)
        except Rejected as refusal:
            return await reply.refuse(refusal)

    @staticmethod
    def _named(request: web.Request, call: Call) -> str:
        """Return the episode that a call names, empty if it names none."""
        return (
            request.match_info.get('episode')
            or request.headers.get('X-Session-ID')
            or call.session
        )

    def _episode(self, request: web.Request, named: str) -> Episode:
        if not named:
            raise Refused(
                Reason.REJECTED_EPISODE,
                'the call names no episode; let the base URL be '
                f'{request.scheme}://{request.host}/e/EPISODE/v1, or send X-Session-ID',
            )
        try:
            return self._admission.get(named)
        except Rejected:
            wish = self._gate.implicit(named, request.headers.get('X-Robot-ID', ''))
        lease_ns = seconds_ns(self._config.idle_lease_s)
        return self._admission.open(wish, lease_ns, self._clock.now_ns())

    async def _turn(
        self, request: web.Request, call: Call, episode: Episode, reply: Reply
    ) -> web.StreamResponse:
        self._admission.call_opened(episode, self._clock.now_ns())
        try:
            await self._gate.open(episode, reply)
            await self._counted(request, call, episode, reply)
            return await reply.end()
        finally:
            self._admission.call_closed(episode, self._clock.now_ns())
            self._upstreams.look_soon()

    async def _counted(
        self, request: web.Request, call: Call, episode: Episode, reply: Reply
    ) -> None:
        """Pass a turn on, and let everybody know of its beginning and end."""
        upstream, usage, ending = self._upstreams[episode.upstream], None, Ending.BROKEN
        self._admission.turn_started(episode, call.prompt, self._clock.now_ns())
        try:
            usage = await upstream.until_dead(
                self._forward(request, call, upstream, reply, episode)
            )
            ending = Ending.REFUSED if reply.failed else Ending.WHOLE
        finally:
            self._admission.turn_ended(episode, usage, self._clock.now_ns(), ending)

    async def _aside(
        self, request: web.Request, call: Call, named: str, reply: Reply
    ) -> web.StreamResponse:
        """Pass on a call that is no turn: to the server of its episode, or to any."""
        episode = self._admission.find(named)
        if episode is not None:
            self._admission.renew(episode, self._clock.now_ns())
        name = self._upstreams.any_name() if episode is None else episode.upstream
        if why := self._admission.trouble(name):
            raise Refused(Reason.BRAIN_UNAVAILABLE, why)
        upstream = self._upstreams[name]
        await upstream.until_dead(self._forward(request, call, upstream, reply, None))
        return await reply.end()

    async def _forward(
        self,
        request: web.Request,
        call: Call,
        upstream: Upstream,
        reply: Reply,
        episode: Episode | None,
    ) -> TurnUsage | None:
        number = upstream.begin_call() if episode is not None else None
        try:
            async with self._upstreams.session.request(
                request.method,
                upstream.url(f'/v1/{call.endpoint}'),
                params=request.query,
                data=call.body or None,
                headers=self._headers(request, upstream, episode, reply),
                allow_redirects=False,
            ) as answer:
                return await self._pass_on(answer, call, upstream, reply, episode)
        except NO_CONNECTION as error:
            if number is not None:
                upstream.watch.ended(number)
            why = self._upstreams.unreachable(upstream, error)
            raise Refused(Reason.BRAIN_UNAVAILABLE, why, retry_after_s=1) from None
        except (aiohttp.ClientError, asyncio.TimeoutError):
            raise Refused(
                Reason.BRAIN_UNAVAILABLE, 'the LLM server broke off', retry_after_s=1
            ) from None
        finally:
            if number is not None:
                upstream.watch.ended(number)

    async def _pass_on(
        self,
        answer: aiohttp.ClientResponse,
        call: Call,
        upstream: Upstream,
        reply: Reply,
        episode: Episode | None,
    ) -> TurnUsage | None:
        good = answer.status == 200
        if good and episode is not None:
            upstream.answered(call.model)
        streams = answer.content_type == SSE and 'Content-Encoding' not in answer.headers
        reader = UsageReader(streams=streams)
        hidden = UsageFilter() if streams and call.hides_usage and good else None
        await reply.begin(answer.status, answer.headers, exact=hidden is None)
        is_first = True
        async for data in answer.content.iter_any():
            now_ns = self._clock.now_ns()
            upstream.watch.moved(now_ns)
            if is_first and good and episode is not None:
                self._admission.turn_answering(episode, now_ns)
            is_first = False
            reader.feed(data)
            await reply.write(hidden.pass_on(data) if hidden is not None else data)
        if hidden is not None:
            await reply.write(hidden.rest())
        return reader.usage() if good else None

    def _headers(
        self,
        request: web.Request,
        upstream: Upstream,
        episode: Episode | None,
        reply: Reply,
    ) -> dict[str, str]:
        kept: Mapping[str, str] = request.headers
        headers = {key: value for key, value in kept.items() if key.lower() not in _OURS}
        if upstream.token or self._token:
            headers = {k: v for k, v in headers.items() if k.lower() not in _KEYS}
        headers |= upstream.key()
        headers['X-Request-Id'] = reply.request_id
        if episode is not None:
            headers['X-Session-ID'] = episode.id
        return headers
