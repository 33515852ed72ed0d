# SPDX-License-Identifier: Apache-2.0
"""One LLM server: how it is called, whether it gets on, what it says of itself."""

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import aiohttp

from xinfer_ros.brain.gateway.patience import at_most, not_outlived
from xinfer_ros.brain.gateway.progress import ProgressWatch, Verdict
from xinfer_ros.brain.gateway.scrape import MOST_BYTES, Scrape, read_metrics
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason, Rejected

ResultT = TypeVar('ResultT')
PROBE_S = 60.0  # one that hangs is given up then; a server that goes on ends it sooner
SCRAPE_S = 2.0
ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


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
        self.name, self.watch, self.token = url.rstrip('/'), watch, token
        self._session, self._clock = session, clock
        self._numbers = itertools.count(1)
        self._dead: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.model = ''
        self.scrape: Scrape | None = None

    def url(self, path: str) -> str:
        """Return the URL of a path that begins with a slash."""
        return self.name + path

    def begin_call(self) -> int:
        """Take note of a call that is sent; return its number."""
        number = next(self._numbers)
        self.watch.started(number, self._clock.now_ns())
        return number

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

    async def probe(self) -> Verdict:
        """Ask for one token, and judge the server by whether it comes."""
        good = False
        with contextlib.suppress(*ERRORS):
            good = await at_most(self._one_token(), PROBE_S)
        return self.watch.probed(good, self._clock.now_ns())

    async def _one_token(self) -> bool:
        if not self.model:
            self.model = await self._first_model()
        asked: dict[str, Any] = {'model': self.model, 'max_tokens': 1}
        for path, prompt in (
            ('/v1/completions', {'prompt': '.'}),
            ('/v1/chat/completions', {'messages': [{'role': 'user', 'content': '.'}]}),
        ):
            async with self._session.post(
                self.url(path), json=asked | prompt, headers=self.key(), allow_redirects=False
            ) as answer:
                await answer.read()
                if answer.status not in (404, 405):
                    return answer.status == 200
        return False

    async def _first_model(self) -> str:
        url = self.url('/v1/models')
        async with self._session.get(url, headers=self.key(), allow_redirects=False) as answer:
            facts = await answer.json(content_type=None)
        try:
            return str(facts['data'][0]['id'])
        except (KeyError, IndexError, TypeError):
            return ''

    def key(self) -> dict[str, str]:
        """Return the header with its API key."""
        return {'Authorization': f'Bearer {self.token}'} if self.token else {}

    async def look(self) -> None:
        """
        Read the metrics of the server into ``scrape``, None if it has none that can be read.

        :raises aiohttp.ClientConnectorError: if nobody listens there
        """
        self.scrape = None
        try:
            self.scrape = read_metrics(await at_most(self._metrics(), SCRAPE_S))
        except aiohttp.ClientConnectorError:
            raise
        except ERRORS:
            pass
        steps = None if self.scrape is None else self.scrape.steps
        self.watch.counted(steps, self._clock.now_ns())

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
