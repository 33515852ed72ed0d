# SPDX-License-Identifier: Apache-2.0
"""How many episodes an LLM server has room for, and how often they call, without simulation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from xinfer_ros.brain.forecast import Forecast
from xinfer_ros.brain.llm_server import ServerModel
from xinfer_ros.brain.prefix_cache import held_tokens
from xinfer_ros.brain.trace import EpisodeTrace, draw_episode
from xinfer_ros.fleet.plan_brain_file import Brain

NS = 1e9
EPISODES, SEED = 400, 1000
SETS = 100  # of contexts, drawn to find how many fit
HALVINGS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """
    A turn, or the mean of all.

    :param prompt: its length [tokens]
    :param grown: by how much the context is longer than before, with the answer [tokens]
    :param prefill_s: to compute what was not cached of it [s]
    :param gap_s: before it [s]
    """

    is_first: bool
    prompt: float
    grown: float
    prefill_s: float
    output: float
    gap_s: float


class BrainTier:
    """
    Bounds the episodes that one LLM server keeps in its prefix cache.

    The default controller admits one more while the forecast peak of the contexts, its own first
    one included, is at most ``admit_share`` of the cache. Here the forecast has learned from drawn
    episodes, the contexts that are there are drawn from all turns alike, and the cache is as large
    as it is: the mean, over many sets, of the number that fits.

    Source: ``brain.controllers.working_set``, whose rule and forecast these are. The context of an
    episode that has just ended is not counted: without a ``context_hint`` it may delay the next
    one until those that go on have had a turn.

    :param brain: server, episodes and controller
    :param episodes: how many are drawn
    """

    def __init__(self, brain: Brain, episodes: int = EPISODES) -> None:
        self._brain = brain
        s = brain.controller
        self._forecast = Forecast(
            s.typical_turns, s.typical_prompt_tokens, s.typical_growth_tokens, s.ahead_turns
        )
        self._contexts: list[tuple[int, int]] = []
        drawn = (draw_episode(brain.episodes, SEED, 0, number) for number in range(episodes))
        turns = [turn for trace in drawn for turn in self._take(trace)]
        self._mean = _mean_of(turns)
        # a forecast remembers some turns; a plan is for all of them
        self._forecast.first_tokens = fmean(t.grown for t in turns if t.is_first)
        self._forecast.growth_tokens = fmean(t.grown for t in turns if not t.is_first)
        self.admitted = self._mean_that_fits()

    def robots(self, share: float) -> int:
        """
        Return the largest fleet of which every episode has a place at once.

        :param share: of the robots that run an episode at a time, above 0
        """
        return int(self.admitted / share + 1e-9)

    def calls_per_s(self, away_s: float = 0.0) -> float:
        """
        Return how often the admitted episodes call, all together [1/s].

        A server that computes prompts and decodes a batch of ``B`` gives
        ``X = 1 / (p + D·(c·C + e/B))``: ``p`` a prompt, ``D`` steps of ``e`` s and ``c`` s a token
        of a context ``C``. Who is not decoded is prefilled or away: ``B = K − X·(p + gap)``.
        Source: the costs of ``ServerModel`` and Little's law.

        :param away_s: for which robots are busy otherwise, for each call [s]
        """
        model, mean = self._brain.server, self._mean
        busy_s = mean.prefill_s + mean.gap_s + away_s
        context_s = model.step_context_s * mean.prompt
        low, high = 0.0, self.admitted / busy_s
        for _ in range(HALVINGS):
            rate = (low + high) / 2.0
            batch = min(max(self.admitted - rate * busy_s, 1e-9), model.max_requests)
            step_s = context_s + model.step_s / max(batch, 1.0)
            gives = 1.0 / (mean.prefill_s + mean.output * step_s)
            alone = batch / (mean.output * step_s)  # a batch below one
            low, high = (rate, high) if rate < min(gives, alone) else (low, rate)
        return low

    def _take(self, trace: EpisodeTrace) -> Iterator[_Turn]:
        """Learn from an episode, and yield its turns."""
        model = self._brain.server
        prompt, before = 0, None
        for number, turn in enumerate(trace.turns, 1):
            cached = prompt or model.shared_tokens
            prompt = min(prompt + turn.appended_tokens, self._brain.episodes.max_context)
            context = prompt + turn.output_tokens
            self._forecast.turn_ended(number, before, context)
            if number < len(trace.turns):
                self._contexts.append((held_tokens(context, model.block_tokens), number))
            yield _Turn(
                is_first=number == 1,
                prompt=prompt,
                grown=context - (before or 0),
                prefill_s=_prefill_s(model, prompt, max(prompt - cached, 1)),
                output=turn.output_tokens,
                gap_s=turn.gap_ns / NS,
            )
            before = context
        self._forecast.episode_ended(len(trace.turns))

    def _mean_that_fits(self) -> float:
        random = np.random.default_rng(SEED)
        room = self._brain.controller.admit_share * self._brain.cache_tokens
        most = int(room / min(tokens for tokens, _ in self._contexts)) + 2
        places = random.integers(0, len(self._contexts), (SETS, most))
        found = [self._that_fit([self._contexts[p] for p in row], room) for row in places]
        return float(np.mean(found))

    def _that_fit(self, contexts: Sequence[tuple[int, int]], room: float) -> int:
        """Return how many contexts fit, a new episode's among them; at least one is admitted."""
        first = held_tokens(round(self._forecast.first_tokens), self._brain.server.block_tokens)
        deviations = self._brain.controller.deviations
        low, high = 1, len(contexts)
        while low < high:
            middle = (low + high + 1) // 2
            held = [*contexts[: middle - 1], (first, 0)]
            fits = self._forecast.peak(held, deviations) <= room
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


def _prefill_s(model: ServerModel, prompt: int, computed: int) -> float:
    square = prompt**2 - (prompt - computed) ** 2
    return model.prefill_linear_s * computed + model.prefill_square_s * square


def _mean_of(turns: Sequence[_Turn]) -> _Turn:
    return _Turn(
        is_first=False,
        prompt=fmean(turn.prompt for turn in turns),
        grown=fmean(turn.grown for turn in turns),
        prefill_s=fmean(turn.prefill_s for turn in turns),
        output=fmean(turn.output for turn in turns),
        gap_s=fmean(turn.gap_s for turn in turns),
    )
