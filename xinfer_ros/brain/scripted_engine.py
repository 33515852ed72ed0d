# SPDX-License-Identifier: Apache-2.0
"""A scripted LLM: no network, but a true prefix cache and a step loop that takes its time."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import blake2b

from xinfer_ros.brain.prefix_cache import PrefixCache

TOKEN_CHARACTERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCosts:
    """
    What the scripted LLM costs and holds.

    :param blocks: of its prefix cache
    :param block_tokens: size of a block [tokens]
    :param step_s: a step in which every running request gets a token [s]
    :param prefill_s: a prompt token that is computed [s]
    :param step_tokens: prompt tokens computed in one step at most [tokens]
    :param max_requests: most requests in a step
    """

    blocks: int = 400
    block_tokens: int = 128
    step_s: float = 0.002
    prefill_s: float = 4e-5
    step_tokens: int = 2048
    max_requests: int = 16


@dataclass(slots=True, kw_only=True)
class ScriptedRequest:
    """A request on its way; ``tokens`` gets the number of each token, None at the end."""

    number: int
    prompt: list[int]
    answer: list[int]
    cached: int = 0
    computed: int = 0
    given: int = 0
    tokens: 'asyncio.Queue[int | None]' = field(default_factory=asyncio.Queue)


@dataclass(slots=True)
class EngineCounters:
    """What the metrics page counts."""

    steps: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    queries: int = 0
    hits: int = 0


def tokens_of(text: str) -> list[int]:
    """Return a text as tokens, four characters each; the beginning of a text stays the same."""
    data = text.encode('utf-8', 'replace')
    step = TOKEN_CHARACTERS
    return [int.from_bytes(data[i : i + step], 'big') for i in range(0, len(data), step)]


def text_of(token: int) -> str:
    """Return the text of a generated token."""
    return token.to_bytes(TOKEN_CHARACTERS, 'big').decode('ascii')


def answer_to(prompt: list[int], length: int) -> list[int]:
    """Return the answer to a prompt, always the same: hexadecimal words."""
    key = blake2b(repr(prompt[-64:]).encode(), digest_size=8).hexdigest()
    words = (blake2b(f'{key}{i}'.encode(), digest_size=2).hexdigest() for i in range(length))
    return [tokens_of(word)[0] for word in words]


class ScriptedEngine:
    """
    Continuous batching with chunked prefill over an LRU prefix cache; first come, first served.

    :param costs: what things take
    """

    def __init__(self, costs: ScriptedCosts) -> None:
        self.costs = costs
        self.cache = PrefixCache(costs.blocks, costs.block_tokens)
        self.counters = EngineCounters()
        self._numbers = itertools.count(1)
        self._waiting: deque[ScriptedRequest] = deque()
        self._running: list[ScriptedRequest] = []
        self._work, self._alive = asyncio.Event(), asyncio.Event()
        self._alive.set()

    @property
    def waiting(self) -> int:
        """Return how many requests wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Return how many requests are computed."""
        return len(self._running)

    def freeze(self) -> None:
        """Give no token any more, as an engine does whose process hangs."""
        self._alive.clear()

    def thaw(self) -> None:
        """Go on."""
        self._alive.set()

    def submit(self, prompt: list[int], length: int) -> ScriptedRequest:
        """Let a request be computed."""
        request = ScriptedRequest(
            number=next(self._numbers), prompt=prompt, answer=answer_to(prompt, length)
        )
        self._waiting.append(request)
        self._work.set()
        return request

    def drop(self, request: ScriptedRequest) -> None:
        """Stop a request, whose reader has gone."""
        if request in self._waiting:
            self._waiting.remove(request)
        if request in self._running:
            self._running.remove(request)
            self.cache.release(request.number)

    async def read(self, request: ScriptedRequest) -> AsyncIterator[int]:
        """Yield the tokens of an answer as they come; whoever stops reading drops it."""
        try:
            while (token := await request.tokens.get()) is not None:
                yield token
        finally:
            self.drop(request)

    async def run(self) -> None:
        """Compute until it is cancelled."""
        while True:
            await self._alive.wait()
            self._admit()
            if not self._running:
                self._work.clear()
                await self._work.wait()
                continue
            computed = self._prefill()
            await asyncio.sleep(self.costs.step_s + computed * self.costs.prefill_s)
            await self._alive.wait()
            self._give()

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.costs.max_requests:
            request = self._waiting[0]
            found = self.cache.hold(request.number, request.prompt + request.answer)
            if found is None:
                if not self._running:  # it will never fit
                    self._waiting.popleft().tokens.put_nowait(None)
                return
            self._waiting.popleft()
            block = self.costs.block_tokens
            most = (len(request.prompt) - 1) // block * block  # something must be computed
            request.cached = request.computed = max(min(found, most), 0)
            self.counters.queries += len(request.prompt)
            self.counters.hits += request.cached
            self.counters.prompt_tokens += len(request.prompt)
            self._running.append(request)

    def _prefill(self) -> int:
        """Compute prompts in order, as far as one step goes; return how much [tokens]."""
        left = self.costs.step_tokens
        for request in self._running:
            part = min(len(request.prompt) - request.computed, left)
            request.computed += part
            left -= part
        return self.costs.step_tokens - left

    def _give(self) -> None:
        """End a step: every prompt that is computed gets its next token."""
        self.counters.steps += 1
        for request in list(self._running):
            if request.computed < len(request.prompt):
                continue
            request.tokens.put_nowait(request.answer[request.given])
            request.given += 1
            self.counters.generation_tokens += 1
            if request.given == len(request.answer):
                request.tokens.put_nowait(None)
                self.drop(request)
