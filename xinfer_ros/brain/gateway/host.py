# SPDX-License-Identifier: Apache-2.0
"""Runs a gateway in a thread of its own, for programs that wait elsewhere."""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from xinfer_ros.brain.gateway.episode import Episode, EpisodeRequest, EpisodeView, Outcome
from xinfer_ros.brain.gateway.gate import seconds_ns
from xinfer_ros.brain.gateway.gateway import Gateway
from xinfer_ros.brain.gateway.view import view_of
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Rejected

CLOSE_S = 5.0

log = logging.getLogger(__name__)


class GatewayHost:
    """
    A gateway with its event loop; every method may be called from any thread.

    ``changed`` and ``refused`` are called in the thread of the gateway.

    :param make: makes the gateway
    :param config: its settings
    :param clock: the steady clock
    :param failed: called if the thread ends by itself
    """

    def __init__(
        self,
        make: Callable[[], Gateway],
        config: BrainConfig,
        clock: Clock,
        failed: Callable[[], None],
    ) -> None:
        self._make, self._config, self._clock, self._failed = make, config, clock, failed
        self._loop = asyncio.new_event_loop()
        self._waits: set[asyncio.Task[None]] = set()
        self._gateway: Gateway | None = None
        self._thread = threading.Thread(target=self._run, name='gateway', daemon=True)

    @property
    def gateway(self) -> Gateway:
        """Return the gateway, which has started."""
        assert self._gateway is not None, 'the gateway is not started'
        return self._gateway

    def start(self) -> None:
        """
        Begin to serve.

        :raises ConfigError: if the gateway can't be made, or its address is not free
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        gateway = self._make()
        await gateway.start()
        self._gateway = gateway

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        except Exception:
            log.exception('the gateway ends')
            self._failed()

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something in the loop of the gateway to its end; what it raises is raised here."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CLOSE_S)

    def listen(self, changed: Callable[[EpisodeView], None]) -> None:
        """Let somebody know of each change of an episode."""

        def tell(episode: Episode) -> None:
            changed(self._view(episode))

        self._post(lambda: self.gateway.bells.listen(tell))

    def refresh(self, changed: Callable[[EpisodeView], None]) -> None:
        """Show every episode that is not over to somebody."""

        def show() -> None:
            for episode in self.gateway.admission.episodes():
                changed(self._view(episode))

        self._post(show)

    def status(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Give the state of the gateway, as in ``/status.json``, to somebody."""
        self._post(lambda: take(self.gateway.pages.status()))

    def _view(self, episode: Episode) -> EpisodeView:
        return view_of(self.gateway.admission, episode, self._clock.now_ns())

    def base_url(self, episode_id: str) -> str:
        """Return what an agent's OPENAI_BASE_URL must be."""
        return self.gateway.routes.base_url(episode_id)

    def open(self, wish: EpisodeRequest, refused: Callable[[Rejected], None]) -> None:
        """Open an episode; it ends NOT_ADMITTED if it gets no place within its longest wait."""

        def begin() -> None:
            lease_ns = seconds_ns(self._config.lease_s)
            try:
                episode = self.gateway.admission.open(wish, lease_ns, self._clock.now_ns())
            except Rejected as refusal:
                refused(refusal)
                return
            self.gateway.upstreams.look_soon()
            task = self._loop.create_task(self._admit(episode))
            self._waits.add(task)
            task.add_done_callback(self._waited)

        self._post(begin)

    def _waited(self, task: 'asyncio.Task[None]') -> None:
        self._waits.discard(task)
        if not task.cancelled():
            self._do(task.result)

    async def _admit(self, episode: Episode) -> None:
        if not await self.gateway.gate.admitted(episode, episode.request.max_wait_ns):
            self.gateway.admission.end(episode, Outcome.NOT_ADMITTED, self._clock.now_ns())

    def end(self, episode_id: str) -> None:
        """End an episode as wished; an unknown one is over already."""

        def finish() -> None:
            episode = self.gateway.admission.find(episode_id)
            if episode is not None:
                self.gateway.admission.end(episode, Outcome.ENDED, self._clock.now_ns())

        self._post(finish)

    def alive(self, episode_id: str, *, is_heartbeat: bool) -> None:
        """
        Take note of a sign of life, which renews the lease of an episode.

        :param is_heartbeat: whether it says that the agent lives; else only its robot does, which
            once it is admitted counts for ``agent_idle_s`` after the last call
        """

        def renew() -> None:
            episode = self.gateway.admission.find(episode_id)
            if episode is None:
                return
            now_ns = self._clock.now_ns()
            idle_ns = now_ns - episode.called_ns if episode.was_admitted else 0
            if is_heartbeat:
                self.gateway.admission.renew(episode, now_ns)
            elif idle_ns < seconds_ns(self._config.agent_idle_s):
                episode.extend(now_ns)

        self._post(renew)

    def _post(self, work: Callable[[], Any]) -> None:
        self._loop.call_soon_threadsafe(self._do, work)

    def _do(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception:  # else the loop would go on, and somebody would wait for ever
            log.exception('the gateway has failed')
            self._failed()

    def close(self) -> None:
        """End every episode, stop serving, and end the thread."""
        if self._gateway is not None:
            closing = asyncio.run_coroutine_threadsafe(self._gateway.close(), self._loop)
            try:
                closing.result(CLOSE_S)
            except concurrent.futures.TimeoutError:
                log.error('the gateway does not end within %s s', CLOSE_S)
        self._post(self._loop.stop)
        self._thread.join(CLOSE_S)
