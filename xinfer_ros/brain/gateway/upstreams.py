# SPDX-License-Identifier: Apache-2.0
"""The LLM servers of a gateway, and what is looked after beside the calls."""

import asyncio
import errno
import logging
import re
from collections.abc import Coroutine
from typing import Any

import aiohttp

from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.gate import seconds_ns
from xinfer_ros.brain.gateway.patience import until_set
from xinfer_ros.brain.gateway.progress import Probe, ProgressWatch, Verdict
from xinfer_ros.brain.gateway.upstream import Upstream
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock

HOUSEKEEPING_NS = 1_000_000_000  # controllers decide at least so often
REPEAT_NS = 60_000_000_000  # a warning that stays is logged again
_DIGITS = re.compile(r'\d+')

log = logging.getLogger(__name__)


class Upstreams:
    """
    Every LLM server; ends leases, sends probes and reads metrics while ``run`` runs.

    :param config: settings
    :param admission: told who is dead, and what metrics say
    :param session: makes connections
    :param clock: the steady clock
    :param token: API key of the LLM servers, empty: none
    """

    def __init__(
        self,
        config: BrainConfig,
        admission: Admission,
        session: aiohttp.ClientSession,
        clock: Clock,
        token: str,
    ) -> None:
        self._config, self._admission, self._clock = config, admission, clock
        self.session = session
        self._alarm = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._warned: dict[str, int] = {}
        self._failure: BaseException | None = None
        limit_ns, period_ns = (
            seconds_ns(config.progress_timeout_s),
            seconds_ns(config.probe_period_s),
        )
        self._all = {
            url: Upstream(url, session, ProgressWatch(limit_ns, period_ns), clock, token)
            for url in config.upstreams
        }

    def __getitem__(self, name: str) -> Upstream:
        """Return an LLM server by its name."""
        return self._all[name]

    def all(self) -> dict[str, Upstream]:
        """Return every LLM server by its name."""
        return dict(self._all)

    def any_name(self) -> str:
        """Return the first LLM server that gets on, the first of all if none does."""
        up = [name for name, upstream in self._all.items() if not upstream.watch.is_down]
        return (up or list(self._all))[0]

    def look_soon(self) -> None:
        """Let leases and progress be looked at, since one may end sooner than was known."""
        self._alarm.set()

    def unreachable(self, upstream: Upstream, error: Exception) -> str:
        """Take note that no connection to an LLM server can be made; return why, in words."""
        cause = getattr(error, 'strerror', None) or error
        why = f'the LLM server {upstream.name} does not accept connections: {cause}'
        if getattr(error, 'errno', None) in (
            errno.EMFILE,
            errno.ENFILE,
        ):  # says nothing of the server
            log.error('%s; raise the limit of open files of the gateway', why)
        else:
            self._judged(upstream, upstream.watch.failed(why, self._clock.now_ns()))
        return why

    async def run(self) -> None:
        """Look after leases and servers until it is cancelled."""
        try:
            for upstream in self._all.values():
                self._start(self._read_metrics(upstream))
            while True:
                await self._look()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self) -> None:
        """Do what is due, then wait until something else is."""
        if self._failure is not None:
            raise self._failure
        self._alarm.clear()
        now_ns = self._clock.now_ns()
        self._admission.expire(now_ns)
        for upstream in self._all.values():
            self._judged(upstream, upstream.watch.judge(now_ns))
            if upstream.watch.take_probe(now_ns):
                self._start(self._probe(upstream))
        self._admission.settle(now_ns)
        self._warn()
        expiry_ns = self._admission.next_expiry_ns()
        next_ns = min(
            now_ns + HOUSEKEEPING_NS,
            now_ns + HOUSEKEEPING_NS if expiry_ns is None else expiry_ns,
            *(upstream.watch.look_again_ns(now_ns) for upstream in self._all.values()),
        )
        await until_set(self._alarm, max(next_ns - now_ns, 1_000_000) / 1e9)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: 'asyncio.Task[None]') -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
            self.look_soon()

    async def _probe(self, upstream: Upstream) -> None:
        found = await upstream.probe()
        if found is Probe.SHUT_OUT:
            self._warn_of(f'{upstream.name}: it wants an API key of probes: upstream_token_file')
        self._judged(upstream, upstream.watch.probed(found, self._clock.now_ns()))

    def _judged(self, upstream: Upstream, verdict: Verdict) -> None:
        now_ns = self._clock.now_ns()
        if verdict is Verdict.DOWN:
            log.error('%s: BRAIN_UNAVAILABLE: %s', upstream.name, upstream.watch.why)
            self._admission.upstream_down(upstream.name, upstream.watch.why, now_ns)
            upstream.died()
        elif verdict is Verdict.UP:
            log.warning('%s: gets on again', upstream.name)
            upstream.revived()
            self._admission.upstream_up(upstream.name, now_ns)
        if verdict is not Verdict.SAME:
            self.look_soon()

    async def look_first(self) -> None:
        """Read the metrics of every server once, so that controllers know what they deal with."""
        await asyncio.gather(*map(self._look_at, self._all.values()))

    async def _look_at(self, upstream: Upstream) -> None:
        try:
            await upstream.look()
        except aiohttp.ClientConnectorError as error:
            self.unreachable(upstream, error)
        gauges = None if upstream.scrape is None else upstream.scrape.gauges
        self._admission.metrics(upstream.name, gauges, self._clock.now_ns())

    async def _read_metrics(self, upstream: Upstream) -> None:
        """Read the metrics of a server again and again; without any, the ledger has to do."""
        while True:
            await asyncio.sleep(self._config.metrics_period_s)
            await self._look_at(upstream)

    def _warn(self) -> None:
        """Log what controllers warn of; a warning that lasts is repeated now and then."""
        for name in self._all:
            for warning in self._admission.controller(name).state(self._clock.now_ns()).warnings:
                self._warn_of(f'{name}: {warning}')

    def _warn_of(self, warning: str) -> None:
        now_ns = self._clock.now_ns()
        kind = _DIGITS.sub('', warning)
        told_ns = self._warned.get(kind)
        if told_ns is None or now_ns - told_ns >= REPEAT_NS:
            self._warned[kind] = now_ns
            log.warning('%s', warning)
