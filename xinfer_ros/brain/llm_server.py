# SPDX-License-Identifier: Apache-2.0
"""An LLM server in virtual time: chunked prefill beside batched decode, over a prefix cache."""

import heapq
from collections import deque
from dataclasses import dataclass, field

from xinfer_ros.brain.chain_cache import ChainCache

NS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerModel:
    """
    What an LLM server costs and holds.

    Source: fitted to the published figures of one server (`docs/brain.md`); they reproduce its
    throughput with and without admission, and predict no other.

    :param prefill_linear_s: a computed token [s]
    :param prefill_square_s: the same, by its place: ``(c+n)² − c²`` for n after c [s]
    :param step_s: a decode step [s]
    :param step_context_s: the same, for each token of the contexts of the batch [s]
    :param step_tokens: prompt tokens computed in one step at most [tokens]
    :param blocks: of the cache
    :param blocks_a_block: cache blocks that a block of attention takes, with the other states
    :param partial_hits: see ChainCache
    """

    prefill_linear_s: float = 3.025e-5
    prefill_square_s: float = 8.126e-11
    step_s: float = 0.0085
    step_context_s: float = 6.5e-9
    step_tokens: int = 8192
    blocks: int = 4333
    block_tokens: int = 784
    blocks_a_block: float = 1.42
    shared_tokens: int = 18_000
    max_requests: int = 64
    partial_hits: bool = False

    @property
    def nominal_tokens(self) -> int:
        """Return what the server says that its cache holds [tokens]."""
        return self.blocks * self.block_tokens

    def attention_blocks(self, share: float = 1.0) -> int:
        """Return how many blocks of attention the cache holds, or a share of it."""
        return int(share * self.blocks / self.blocks_a_block)


@dataclass(slots=True)
class Call:
    """A request on its way through the server."""

    session: str
    prompt: int
    output: int
    computed: int = 0
    cached: int = 0
    hit: bool = False  # whether its session's chain had lost nothing
    first_token_ns: int = 0


@dataclass(slots=True)
class StepEnd:
    """What a step, or a run of equal ones, came to."""

    at_ns: int
    answering: list[Call] = field(default_factory=list)
    done: list[Call] = field(default_factory=list)


class LlmServer:
    """
    Serves calls first come, first served; the caller owns the time.

    :param model: what things cost
    """

    def __init__(self, model: ServerModel) -> None:
        self.model = model
        self._cache = ChainCache(
            model.attention_blocks(), model.block_tokens, model.shared_tokens, model.partial_hits
        )
        self._waiting: deque[Call] = deque()
        self._prefilling: deque[Call] = deque()
        self._decoding: list[tuple[int, int, Call]] = []  # by the step that ends it
        self._order = 0
        self._steps = 0
        self._contexts = 0  # tokens of all contexts that decode
        self.prefix_queries = 0
        self.prefix_hits = 0

    @property
    def running(self) -> int:
        """Return how many calls are computed."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        """Return how many calls wait."""
        return len(self._waiting)

    @property
    def usage(self) -> float:
        """Return the share of blocks that running calls hold."""
        return self._cache.held_share

    def resize(self, share: float) -> None:
        """Give the cache a share of its full size."""
        self._cache.resize(self.model.attention_blocks(share))

    def submit(self, call: Call) -> None:
        """Put a call at the end of the line."""
        self._waiting.append(call)

    def step(self, now_ns: int, next_event_ns: int) -> StepEnd | None:
        """
        Compute one step, or several if nothing can change between them.

        :param next_event_ns: when the next call may come
        :returns: what has happened when it ends, None if there is nothing to do
        """
        prefill_s, finished = self._prefill()
        if prefill_s == 0.0 and not self._decoding:
            return None
        batch = len(self._decoding)
        step_s = prefill_s
        if batch:
            step_s += self.model.step_s + self.model.step_context_s * self._contexts
        count = 1
        if prefill_s == 0.0:
            until = -(-(next_event_ns - now_ns) // max(int(step_s * NS), 1))
            count = max(min(self._decoding[0][0] - self._steps, until), 1)
            growth = batch * count * (count - 1) / 2
            step_s = step_s * count + self.model.step_context_s * growth
        end = StepEnd(now_ns + max(round(step_s * NS), 1))
        self._decode(count, end)
        for call in finished:
            self._answer(call, end)
        return end

    def _prefill(self) -> tuple[float, list[Call]]:
        budget, seconds, finished = self.model.step_tokens, 0.0, []
        while budget > 0 and (self._prefilling or self._start_next()):
            call = self._prefilling[0]
            tokens = min(budget, call.prompt - call.computed)
            end = call.computed + tokens
            seconds += self.model.prefill_linear_s * tokens
            seconds += self.model.prefill_square_s * (end * end - call.computed * call.computed)
            call.computed = end
            budget -= tokens
            if end == call.prompt:
                finished.append(self._prefilling.popleft())
        return seconds, finished

    def _start_next(self) -> bool:
        if not self._waiting or self.running >= self.model.max_requests:
            return False
        call = self._waiting[0]
        cached = min(self._cache.cached_tokens(call.session), call.prompt - 1)
        call.hit = self._cache.is_intact(call.session)
        if not self._cache.hold(call.session, call.prompt + call.output):
            return False
        call.cached = call.computed = cached
        self.prefix_queries += call.prompt
        self.prefix_hits += cached
        self._prefilling.append(self._waiting.popleft())
        return True

    def _decode(self, count: int, end: StepEnd) -> None:
        self._steps += count
        self._contexts += count * len(self._decoding)
        while self._decoding and self._decoding[0][0] <= self._steps:
            _, _, call = heapq.heappop(self._decoding)
            self._contexts -= call.prompt + call.output
            self._finish(call, end)

    def _answer(self, call: Call, end: StepEnd) -> None:
        """Count the first token, which the prefill has given."""
        call.first_token_ns = end.at_ns
        end.answering.append(call)
        if call.output <= 1:
            self._finish(call, end)
            return
        self._order += 1
        heapq.heappush(self._decoding, (self._steps + call.output - 1, self._order, call))
        self._contexts += call.prompt + 1

    def _finish(self, call: Call, end: StepEnd) -> None:
        self._cache.release(call.session, call.prompt + call.output)
        end.done.append(call)
