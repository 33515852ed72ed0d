# SPDX-License-Identifier: Apache-2.0
"""Opening, watching and ending episodes by HTTP, for agents without ROS."""

import json
import secrets
from typing import Any

from aiohttp import web

from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.bells import Bells
from xinfer_ros.brain.gateway.episode import Episode, EpisodeRequest, Outcome, Phase
from xinfer_ros.brain.gateway.gate import Gate, seconds_ns
from xinfer_ros.brain.gateway.reply import refusal_response
from xinfer_ros.brain.gateway.upstreams import Upstreams
from xinfer_ros.brain.gateway.view import view_of
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason, Rejected

LONG_POLL_S = 25.0
_FIELDS = {
    'robot': str, 'task': str, 'priority': int, 'max_wait_s': float, 'context_hint': int,
    'episode': str, 'lease_s': float, 'wait': bool,
}  # fmt: skip
_BOUNDS = {'max_wait_s': (0.0, 86400.0), 'lease_s': (0.2, 86400.0), 'context_hint': (0, 2**31)}


class EpisodeRoutes:
    """
    ``/episodes``: POST opens, GET shows or waits, DELETE ends, ``heartbeat`` renews the lease.

    :param admission: of the gateway
    :param gate: knows refusals
    :param bells: ring at changes
    :param upstreams: looked at when a lease begins
    :param config: settings
    :param clock: the steady clock
    :param base_url: gives the base URL of an episode
    """

    def __init__(
        self,
        admission: Admission,
        gate: Gate,
        bells: Bells,
        upstreams: Upstreams,
        config: BrainConfig,
        clock: Clock,
    ) -> None:
        self._admission, self._gate, self._bells = admission, gate, bells
        self._upstreams, self._config, self._clock = upstreams, config, clock
        self.base = ''

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_post('/episodes', self._refusing(self._open))
        router.add_get('/episodes', self._refusing(self._all))
        router.add_get('/episodes/{episode}', self._refusing(self._show))
        router.add_get('/episodes/{episode}/events', self._refusing(self._events))
        router.add_post('/episodes/{episode}/heartbeat', self._refusing(self._heartbeat))
        router.add_delete('/episodes/{episode}', self._refusing(self._end))

    @staticmethod
    def _refusing(handler: Any) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                response: web.StreamResponse = await handler(request)
            except Rejected as refusal:
                return refusal_response(refusal)
            return response

        return handle

    def base_url(self, episode_id: str) -> str:
        """Return what an agent's OPENAI_BASE_URL must be."""
        return f'{self.base}/e/{episode_id}/v1'

    def facts(self, episode: Episode) -> dict[str, Any]:
        """Return an episode in the form of the HTTP interface."""
        view = view_of(self._admission, episode, self._clock.now_ns())
        estimate = view.estimate_ns
        return {
            'episode': view.episode,
            'robot': view.robot,
            'task': view.task,
            'state': view.phase.name,
            'position': view.position,
            'estimate_s': None if estimate is None else round(estimate / 1e9, 3),
            'detail': view.detail,
            'base_url': self.base_url(view.episode),
            'upstream': view.upstream,
            'turns': view.turns,
            'prompt_tokens': view.prompt_tokens,
            'cached_tokens': view.cached_tokens,
            'output_tokens': view.output_tokens,
            'parked_s': round(view.parked_ns / 1e9, 3),
            'lease_left_s': round(view.lease_left_ns / 1e9, 3),
            'outcome': None if view.outcome is None else view.outcome.name,
            'version': view.version,
        }

    async def _open(self, request: web.Request) -> web.StreamResponse:
        wish = read_wish(await request.read())
        max_wait_s = wish.get('max_wait_s', self._config.max_wait_s)
        episode_id = wish.get('episode') or f'ep-{secrets.token_hex(6)}'
        episode = self._admission.open(
            EpisodeRequest(
                episode=episode_id,
                robot=wish.get('robot') or episode_id,
                task=wish.get('task', ''),
                priority=wish.get('priority', 0),
                max_wait_ns=seconds_ns(max_wait_s),
                context_hint=wish.get('context_hint'),
            ),
            seconds_ns(wish.get('lease_s', self._config.lease_s)),
            self._clock.now_ns(),
        )
        self._upstreams.look_soon()
        refusal = self._gate.refusal(episode)
        if refusal is not None:
            raise refusal
        if wish.get('wait', True):
            await self._wait_for_place(episode, seconds_ns(max_wait_s))
        status = 201 if episode.was_admitted else 202
        return web.json_response(self.facts(episode), status=status)

    async def _wait_for_place(self, episode: Episode, max_wait_ns: int) -> None:
        self._admission.call_opened(episode, self._clock.now_ns())
        try:
            await self._gate.place(episode, max_wait_ns)
        finally:
            self._admission.call_closed(episode, self._clock.now_ns())
            self._upstreams.look_soon()

    async def _all(self, request: web.Request) -> web.StreamResponse:
        return web.json_response([self.facts(e) for e in self._admission.episodes()])

    def _named(self, request: web.Request) -> Episode:
        return self._admission.get(request.match_info['episode'])

    async def _show(self, request: web.Request) -> web.StreamResponse:
        """Return an episode; ``?after=VERSION`` waits until it is another one."""
        episode = self._named(request)
        after = request.query.get('after', '')
        if after == str(episode.version):
            await self._bells.wait(episode, LONG_POLL_S)
        return web.json_response(self.facts(episode))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send an event at each change of an episode, to its end; they renew no lease."""
        episode = self._named(request)
        response = web.StreamResponse(headers={'Content-Type': 'text/event-stream'})
        await response.prepare(request)
        sent = -1
        while True:
            line = b': still there\n\n'
            if episode.version != sent:
                sent = episode.version
                line = b'data: ' + json.dumps(self.facts(episode)).encode() + b'\n\n'
            await response.write(line)
            if episode.is_over:
                return response
            if episode.version == sent:
                await self._bells.wait(episode, self._config.heartbeat_s)

    async def _heartbeat(self, request: web.Request) -> web.StreamResponse:
        episode = self._named(request)
        self._admission.renew(episode, self._clock.now_ns())
        return web.json_response(self.facts(episode))

    async def _end(self, request: web.Request) -> web.StreamResponse:
        episode = self._named(request)
        self._admission.end(episode, Outcome.ENDED, self._clock.now_ns())
        facts = self.facts(episode)
        return web.json_response(facts, status=200 if facts['state'] == Phase.ENDED.name else 202)


def read_wish(body: bytes) -> dict[str, Any]:
    """
    Return what a POST of an episode asks for.

    :raises Rejected: REJECTED_EPISODE names the field, and what is allowed
    """
    try:
        wish = json.loads(body or b'{}')
    except (ValueError, RecursionError):
        wish = None
    if not isinstance(wish, dict):
        raise Rejected(Reason.REJECTED_EPISODE, 'the body is no JSON object')
    for name, value in wish.items():
        kind = _FIELDS.get(name)
        if kind is None:
            raise Rejected(
                Reason.REJECTED_EPISODE,
                f'unknown field {name[:80]!r}; known: {", ".join(_FIELDS)}',
            )
        fits = type(value) is kind or (kind is float and type(value) is int)
        low, high = _BOUNDS.get(name, (None, None))
        if not fits or (low is not None and high is not None and not low <= value <= high):
            bounds = '' if low is None else f' from {low:g} to {high:g}'
            raise Rejected(
                Reason.REJECTED_EPISODE,
                f'{name} is {value!r:.80}; allowed: {kind.__name__}{bounds}',
            )
    return wish
