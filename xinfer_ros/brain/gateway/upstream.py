# SPDX-License-Identifier: Apache-2.0
"""One LLM server: how it is called, whether it gets on, what it says of itself."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import aiohttp

from xinfer_ros.brain.gateway.patience import at_most, not_outlived
from xinfer_ros.brain.gateway.progress import Probe, ProgressWatch
from xinfer_ros.brain.gateway.scrape import MOST_BYTES, Scrape, read_metrics
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason, Rejected

ResultT = TypeVar('ResultT')
PROBE_S = 60.0  # one that hangs is given up then; a server that goes on ends it sooner
SCRAPE_S = 2.0
NO_CONNECTION = (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError)
ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, OSError)
SHUT_OUT = (401, 403)


class Upstream:
    """
    An LLM server.

    :param url: of the server, without /v1
    :param session: makes connections
    :param watch: judges its progress
    :param clock: the steady clock
    :param token: its API key, empty: none
    """

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        watch: ProgressWatch,
        clock: Clock,
        token: str,
    ) -> None:
        self.name, self.watch, self.token = url, watch, token
        self._session, self._clock = session, clock
        self._numbers = itertools.count(1)
        self._dead: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._model, self._is_model_good = '', False
        self.scrape: Scrape | None = None

    def url(self, path: str) -> str:
        """Return the URL of a path that begins with a slash."""
        return self.name.rstrip('/') + path

    def begin_call(self) -> int:
        """Take note of a call that is sent; return its number."""
        number = next(self._numbers)
        self.watch.started(number, self._clock.now_ns())
        return number

    def answered(self, model: str) -> None:
        """Take note of a model that has answered a call; probes ask for it."""
        if model:
            self._model, self._is_model_good = model, True

    async def until_dead(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """
        Return the result of some work with the server.

        :raises Rejected: BRAIN_UNAVAILABLE if the server is found dead meanwhile
        """
        async with not_outlived(work) as task:
            ends: set[asyncio.Future[Any]] = {task, self._dead}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        raise Rejected(Reason.BRAIN_UNAVAILABLE, self.watch.why)

    def died(self) -> None:
        """End whatever is done with the server."""
        self._dead.set_result(None)

    def revived(self) -> None:
        """Let calls pass again."""
        self._dead = asyncio.get_running_loop().create_future()

    async def probe(self) -> Probe:
        """Ask for one token; return whether it has come."""
        found = Probe.NOTHING
        with contextlib.suppress(*ERRORS):
            found = await at_most(self._one_token(), PROBE_S)
        self._is_model_good = found is Probe.TOKEN  # it may come back with another one
        return found

    async def _one_token(self) -> Probe:
        if not self._is_model_good:
            self._model = await self._first_model() or self._model
        statuses = []
        asked: dict[str, Any] = {'model': self._model, 'max_tokens': 1}
        for path, prompt in (
            ('/v1/completions', {'prompt': '.'}),
            ('/v1/chat/completions', {'messages': [{'role': 'user', 'content': '.'}]}),
        ):
            async with self._session.post(
                self.url(path), json=asked | prompt, headers=self.key(), allow_redirects=False
            ) as answer:
                await answer.read()
                statuses.append(answer.status)
                if answer.status == 200:
                    return Probe.TOKEN
        return Probe.SHUT_OUT if set(statuses) & set(SHUT_OUT) else Probe.NOTHING

    async def _first_model(self) -> str:
        url = self.url('/v1/models')
        async with self._session.get(url, headers=self.key(), allow_redirects=False) as answer:
            text = await answer.read()
        try:
            return str(json.loads(text)['data'][0]['id'])
        except (ValueError, KeyError, IndexError, TypeError):
            return ''

    def key(self) -> dict[str, str]:
        """Return the header with its API key."""
        return {'Authorization': f'Bearer {self.token}'} if self.token else {}

    async def look(self) -> None:
        """
        Read the metrics of the server into ``scrape``, None if it has none that can be read.

        :raises aiohttp.ClientConnectorError: if nobody listens there
        """
        scrape = None
        try:
            scrape = read_metrics(await at_most(self._metrics(), SCRAPE_S))
        except aiohttp.ClientConnectorError:
            raise
        except ERRORS:
            pass
        finally:
            self.scrape = scrape
            self.watch.counted(None if scrape is None else scrape.steps, self._clock.now_ns())

    async def _metrics(self) -> str:
        """Return the text of the metrics page, empty if there is none."""
        text = bytearray()
        async with self._session.get(
            self.url('/metrics'), headers=self.key(), allow_redirects=False
        ) as answer:
            if answer.status == 200:
                async for data in answer.content.iter_any():
                    text += data
                    if len(text) > MOST_BYTES:
                        return ''
        return text.decode('utf-8', 'replace')
