# SPDX-License-Identifier: Apache-2.0
"""What the gateway tells of itself: ``/status.json`` and ``/metrics``."""

from collections.abc import Iterator
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from xinfer_ros.brain.controller import ControllerState
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.episode import Episode, Outcome, Phase
from xinfer_ros.brain.gateway.routes import EpisodeRoutes
from xinfer_ros.brain.gateway.upstreams import Upstreams
from xinfer_ros.brain.gateway.view import phase_of
from xinfer_ros.core.clock import Clock

_TOTALS = ('turns', 'prompt_tokens', 'cached_tokens', 'output_tokens')
_GAUGES = (
    ('admitted', 'Episodes that may call'),
    ('parked', 'Episodes admitted before that must wait'),
    ('queued', 'Episodes never admitted yet'),
    ('held_tokens', 'Contexts of the admitted episodes'),
    ('estimate_tokens', 'Estimated capacity of the prefix cache'),
    ('limit', 'Largest number of episodes admitted'),
    ('hit_ratio', 'Prompt tokens found cached in the last turns'),
)


class Tally:
    """Counts what episodes that are over have used."""

    def __init__(self) -> None:
        self.used = dict.fromkeys(_TOTALS, 0)
        self.parked_ns = 0
        self.outcomes = dict.fromkeys(Outcome, 0)

    def note(self, episode: Episode) -> None:
        """Take note of a change; only of the last one of an episode."""
        if episode.is_over and episode.outcome is not None:
            for name in _TOTALS:
                self.used[name] += getattr(episode.totals, name)
            self.parked_ns += episode.totals.parked_ns
            self.outcomes[episode.outcome] += 1


class Pages(Collector):
    """
    The pages for people and for Prometheus.

    :param admission: of the gateway
    :param upstreams: the LLM servers
    :param routes: shows episodes
    :param tally: of episodes that are over
    :param clock: the steady clock
    """

    def __init__(
        self,
        admission: Admission,
        upstreams: Upstreams,
        routes: EpisodeRoutes,
        tally: Tally,
        clock: Clock,
    ) -> None:
        self._admission, self._upstreams, self._routes = admission, upstreams, routes
        self._tally, self._clock = tally, clock
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_get('/status.json', self._status)
        router.add_get('/metrics', self._metrics)
        router.add_get('/health', self._health)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({'status': 'ok'})

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response(self.status())

    async def _metrics(self, request: web.Request) -> web.Response:
        text = generate_latest(self._registry)
        return web.Response(body=text, headers={'Content-Type': 'text/plain; version=0.0.4'})

    def status(self) -> dict[str, Any]:
        """Return the state of the gateway in JSON."""
        return {
            'upstreams': [self._upstream(name) for name in self._upstreams.all()],
            'episodes': [self._routes.facts(e) for e in self._admission.episodes()],
            'decisions': [
                {'episode': d.episode, 'action': d.action.value, 'reason': d.reason}
                for d in self._admission.decisions
            ],
            'over': {outcome.name: n for outcome, n in self._tally.outcomes.items()},
        }

    def _upstream(self, name: str) -> dict[str, Any]:
        upstream, controller = self._upstreams[name], self._admission.controller(name)
        state = controller.state(self._clock.now_ns())
        return {
            'name': name,
            'state': 'DOWN' if upstream.watch.is_down else 'UP',
            'detail': upstream.watch.why,
            'metrics': upstream.scrape is not None,
            'controller': controller.name,
            **{key: getattr(state, key) for key, _ in _GAUGES},
            'warnings': list(state.warnings),
        }

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, for Prometheus."""
        states = {
            name: self._admission.controller(name).state(self._clock.now_ns())
            for name in self._upstreams.all()
        }
        yield from _of_controllers(states)
        up = GaugeMetricFamily(
            'xinfer_brain_up', '1 if the LLM server gets on', labels=['upstream']
        )
        for name, upstream in self._upstreams.all().items():
            up.add_metric([name], 0.0 if upstream.watch.is_down else 1.0)
        yield up
        yield from self._of_episodes()

    def _of_episodes(self) -> Iterator[Metric]:
        episodes = self._admission.episodes()
        phases = GaugeMetricFamily('xinfer_brain_episodes', 'Episodes by state', labels=['state'])
        found = [phase_of(self._admission, episode) for episode in episodes]
        for phase in Phase:
            if phase is not Phase.ENDED:
                phases.add_metric([phase.name], found.count(phase))
        yield phases
        for name in _TOTALS:
            live = sum(getattr(episode.totals, name) for episode in episodes)
            yield CounterMetricFamily(
                f'xinfer_brain_{name}', 'Of all episodes', value=self._tally.used[name] + live
            )
        now_ns = self._clock.now_ns()
        parked_ns = self._tally.parked_ns + sum(e.parked_ns(now_ns) for e in episodes)
        yield CounterMetricFamily(
            'xinfer_brain_parked_seconds', 'Time parked', value=parked_ns / 1e9
        )
        over = CounterMetricFamily('xinfer_brain_episodes_over', 'Episodes', labels=['outcome'])
        for outcome, count in self._tally.outcomes.items():
            over.add_metric([outcome.name], count)
        yield over


def _of_controllers(states: dict[str, ControllerState]) -> Iterator[Metric]:
    for key, meaning in _GAUGES:
        metric = GaugeMetricFamily(f'xinfer_brain_{key}', meaning, labels=['upstream'])
        for name, state in states.items():
            value = getattr(state, key)
            if value is not None:
                metric.add_metric([name], float(value))
        yield metric
