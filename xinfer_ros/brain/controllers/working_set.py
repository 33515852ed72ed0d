# SPDX-License-Identifier: Apache-2.0
"""The default: as many episodes as have their contexts in the cache, by its measured capacity."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xinfer_ros.brain.block_size import BlockSize
from xinfer_ros.brain.book import Record
from xinfer_ros.brain.bracket import CapacityBracket
from xinfer_ros.brain.controller import Gauges, TurnUsage
from xinfer_ros.brain.forecast import Forecast
from xinfer_ros.brain.ledger import Ledger
from xinfer_ros.brain.loss_watch import LossWatch
from xinfer_ros.brain.recency import RecencyStack
from xinfer_ros.brain.renewal import Renewal
from xinfer_ros.config.working_set import WorkingSetConfig

NS = 1_000_000_000
FIRST_EPISODES, FIRST_TURNS = 4, 8  # so many begin, until so many turns have shown how they grow
KNOWN_TURNS = 24  # before so many have ended, nobody knows what prompts cost that are not lost
LEAST_KEPT = 0.9  # of a prompt's beginning, for its cached tokens to prove anything


@dataclass(slots=True)
class _Call:
    """
    A call under way.

    :param at_ns: when it began, or its answer did
    :param distance: of its context when it began, or its answer did; None for a first one [tokens]
    :param answered: whether the answer has begun
    """

    at_ns: int
    kept_share: float
    distance: int | None
    answered: bool = False


class WorkingSet:
    """
    Measures the capacity by what survives at which reuse distance, and fills it by a forecast.

    :param capacity_tokens: size of the cache if somebody knows it, 0 to learn it [tokens]
    :param settings: see WorkingSetConfig
    :param block_tokens: size of a cache block until it is known [tokens]
    """

    name = 'working_set'
    limit: int | None = None

    def __init__(
        self,
        capacity_tokens: int = 0,
        settings: WorkingSetConfig | None = None,
        block_tokens: int = 16,
    ) -> None:
        self._settings = settings or WorkingSetConfig()
        s = self._settings
        self._stack = RecencyStack()
        self._is_told = capacity_tokens > 0
        guess = float(capacity_tokens or s.start_tokens)
        self._bracket = CapacityBracket(guess, is_blind=not self._is_told)
        self._block = BlockSize(block_tokens)
        self._ledger = Ledger(block_tokens)
        self._forecast = Forecast(s.typical_turns, 0.0, 0.0, s.ahead_turns)
        self._assume(capacity_tokens or s.start_tokens / s.start_share)
        self._losses = LossWatch()
        self._touched_ns: dict[str, int] = {}
        self._shrunk_ns = -1
        self._renewal = Renewal(round(s.settle_s * NS), round(s.renew_s * NS))
        self._calls: dict[str, _Call] = {}
        self._shared = 0
        self._has_shared = False
        self._load = 0.0
        self._verb = ''

    @property
    def estimate_tokens(self) -> int:
        """Return the estimated capacity [tokens]."""
        return round(self._bracket.guess)

    @property
    def why(self) -> str:
        """Return the figures behind the last answer."""
        return f'the contexts {self._verb} {self._load:,.0f} of {self._bracket.guess:,.0f} tokens'

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """
        Return whether the contexts still fit when they are largest, with one more.

        Those whose agents have said how long they get need no margin for a forecast.
        """
        if self._renewal.bars(admitted, candidate, self._is_lost, now_ns):
            return False
        records = [*admitted, candidate]
        sizes = self._ledger.sizes(records, self._forecast.first_tokens)
        grown = [(size, r.turns) for size, r in zip(sizes, records, strict=True) if not _hint(r)]
        if self._is_learning and len(grown) > FIRST_EPISODES:
            self._load, self._verb = float(sum(sizes)), 'have not shown yet how they grow:'
            return False
        told = sum(max(_hint(r), size) for size, r in zip(sizes, records, strict=True) if _hint(r))
        room = self._bracket.guess - told / self._settings.park_share
        now = sum(size for size, _ in grown)
        if now + self._lingering(admitted) > room:
            self._load, self._verb = told + now, 'come to'
            return False
        room *= self._settings.admit_share
        load = self._forecast.peak(grown, self._settings.deviations)
        self._load, self._verb = told + load, 'will come to'
        return load <= room

    def overshoots(self, staying: Sequence[Record], now_ns: int) -> bool:
        """Return whether the contexts do not fit, once each has had the turn that it is at."""
        forecast = self._forecast
        self._load = sum(self._ledger.sizes(staying, forecast.first_tokens))
        self._load += len(staying) * forecast.growth_tokens + self._lingering(staying)
        self._verb = 'come to'
        return self._load > self._settings.park_share * self._bracket.guess

    def parked_first(self, staying: Sequence[Record], now_ns: int) -> Record:
        """
        Return the youngest; after a collapse the one whose context is lost first.

        What the cache holds is what was used last. Calls under way are computed in any case: so
        those go that are between two turns, then those whose calls began first.
        """
        if self._renewal.is_on(now_ns):
            return min(staying, key=self._last_use)
        return max(staying, key=lambda record: record.admission)

    def order(self, now_ns: int) -> Callable[[Record], int] | None:
        """Return the order after a collapse: contexts that are cached first."""
        return self._renewal.order(self._is_lost, now_ns)

    def _lingering(self, records: Sequence[Record]) -> int:
        """Return what of the cache is full of contexts of episodes that are over [tokens]."""
        names = (record.arrival.episode for record in records)
        return self._stack.lingering(names, self._bracket.guess)

    def _last_use(self, record: Record) -> tuple[bool, int]:
        name = record.arrival.episode
        call = self._calls.get(name)
        return call is not None, call.at_ns if call else self._touched_ns.get(name, -1)

    def _is_lost(self, record: Record) -> bool:
        """Return whether an episode's context is probably not cached any more."""
        name = record.arrival.episode
        call = self._calls.get(name)
        if call is not None and call.answered:
            return False
        distance = self._stack.distance(name)
        return distance is not None and distance > self._bracket.guess

    def turn_started(self, record: Record, kept_share: float, now_ns: int) -> None:
        """Measure the distance of the call's context, as far as it is known now."""
        distance = self._stack.distance(record.arrival.episode)
        if self._is_lost(record):
            self._renewal.renewed(now_ns)
        self._calls[record.arrival.episode] = _Call(now_ns, kept_share, distance)
        self._losses.expect(self._lost(record, kept_share, distance), now_ns)

    def turn_answering(self, record: Record, now_ns: int) -> None:
        """Measure the distance at the moment in which the server has looked for the context."""
        name = record.arrival.episode
        call = self._calls.get(name)
        if call is not None and not call.answered:
            call.at_ns, call.answered = now_ns, True
            call.distance = self._stack.distance(name)
            size = self._ledger.size(record, self._forecast.first_tokens)
            self._stack.hold(name, round(size + self._forecast.growth_tokens))

    def turn_ended(self, record: Record, usage: TurnUsage | None, now_ns: int) -> None:
        """Learn from a turn: what the cache holds, and how contexts grow."""
        name = record.arrival.episode
        call = self._calls.pop(name, None)
        before = record.tokens if record.turns else None
        if usage is None:
            size = self._ledger.size(record, self._forecast.first_tokens)
            tokens = round(size + self._forecast.growth_tokens)
            self._forecast.turn_ended(record.turns + 1, None, None)
        else:
            tokens = usage.prompt_tokens + usage.output_tokens
            self._forecast.turn_ended(record.turns + 1, before, tokens)
            if usage.cached_tokens is not None and call is not None:
                self._block.found(usage.cached_tokens, usage.prompt_tokens)
                self._ledger.block_tokens = self._block.tokens
                self._learn(call, before, usage.cached_tokens, now_ns)
        self._ledger.grown(record, tokens)
        self._stack.release(name, tokens)
        self._touched_ns[name] = now_ns

    def turn_refused(self, record: Record, now_ns: int) -> None:
        """Forget a call that has touched no context."""
        self._calls.pop(record.arrival.episode, None)

    def ended(self, record: Record, now_ns: int) -> None:
        """Learn from the length of an episode, and let its context age."""
        self._calls.pop(record.arrival.episode, None)
        self._touched_ns.pop(record.arrival.episode, None)
        self._forecast.episode_ended(record.turns)
        self._ledger.ended(record)
        if not _hint(record):  # a told place is free at once
            self._stack.end(record.arrival.episode)

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Take what the server tells of its cache; without metrics the ledger goes on alone."""
        if gauges is not None and gauges.block_tokens:
            self._block.tell(gauges.block_tokens)
            self._ledger.block_tokens = gauges.block_tokens
        if not self._is_told and gauges is not None and gauges.capacity_tokens:
            self._is_told = True
            guess = self._settings.start_share * gauges.capacity_tokens
            self._assume(gauges.capacity_tokens)
            self._bracket = CapacityBracket(guess, float(gauges.capacity_tokens))
        growth = self._forecast.growth_tokens
        typical = self._forecast.first_tokens + 10 * growth
        if self._forecast.turns_seen < KNOWN_TURNS:
            typical = math.inf
        if self._losses.alarms(gauges, typical, growth, now_ns):
            self._shrunk_ns = now_ns
            self._renewal.begin(now_ns)
            self._bracket.shrink(now_ns)
        self._bracket.tick(now_ns)

    @property
    def _is_learning(self) -> bool:
        """Return whether nothing says yet how long contexts are."""
        return self._forecast.turns_seen < FIRST_TURNS and not self._settings.typical_growth_tokens

    def _assume(self, capacity_tokens: float) -> None:
        """Expect contexts by the size of the cache, until they are learned."""
        s = self._settings
        self._forecast.assume(
            s.typical_prompt_tokens or s.prompt_share * capacity_tokens,
            s.typical_growth_tokens or s.growth_share * capacity_tokens,
        )

    def _lost(self, record: Record, kept_share: float, distance: int | None) -> float:
        """Return how much of an episode's context is probably not cached any more [tokens]."""
        size = self._ledger.size(record, self._forecast.first_tokens)
        touched_ns = self._touched_ns.get(record.arrival.episode, -1)
        if distance is None or touched_ns < self._shrunk_ns:
            return size
        return size if distance > self._bracket.guess else (1.0 - kept_share) * size

    def _learn(self, call: _Call, before: int | None, cached: int, now_ns: int) -> None:
        """
        Hold what was cached against what could have been.

        What all prompts share is cached for a first one too, and proves nothing. A part of the
        rest means that the cache is just so much too small. A prompt whose beginning was
        rewritten proves nothing either; shares are of bytes, so tokens are known roughly.
        """
        if before is None:
            self._shared = min(self._shared, cached) if self._has_shared else cached
            self._has_shared = True
        if before is None or call.distance is None or call.kept_share < LEAST_KEPT:
            return
        if cached and not self._block.is_known:
            return
        block = self._ledger.block_tokens
        rough = block if call.kept_share == 1.0 else block + round(0.05 * before)
        expected = int(call.kept_share * before) // block * block
        if expected - self._shared < max(2 * block, 0.2 * expected):
            return
        distance = call.distance - (before - expected)  # the end of a context goes first
        lost = expected - cached
        if lost <= rough:
            self._bracket.hit(distance, call.at_ns)
            return
        if cached > self._shared + rough:
            self._bracket.hit(distance - lost, call.at_ns)
            distance -= lost - block
        self._bracket.miss(distance, call.at_ns, now_ns)


def _hint(record: Record) -> int:
    return record.arrival.context_hint or 0
