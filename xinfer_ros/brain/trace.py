# SPDX-License-Identifier: Apache-2.0
"""Episodes of agents as they were published: how long they are, how they grow, how they pause."""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A lognormal distribution of whole numbers, cut at both ends."""

    median: float
    sigma: float
    low: float
    high: float

    def draw(self, random: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """Return values."""
        values = random.lognormal(np.log(self.median), self.sigma, count)
        return np.rint(np.clip(values, self.low, self.high)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceModel:
    """
    What episodes are drawn from.

    Source: the published statistics of 80 episodes with 1,862 turns, and a fit to them.

    :param shared_tokens: the beginning of every prompt, the same for all episodes
    :param appended_shares: quantiles of what a prompt is longer than the one before, ascending
    :param appended_tokens: their values [tokens]
    :param appended_sigma: spread of a factor that each episode has, lognormal
    :param no_gap: share of turns that follow at once
    :param gap_median_s: of the other gaps [s]
    :param max_context: longest prompt [tokens]
    """

    turns: Lengths = Lengths(median=np.exp(3.12), sigma=0.27, low=6, high=62)
    first_prompt: Lengths = Lengths(median=28_000, sigma=0.3, low=19_000, high=80_000)
    shared_tokens: int = 18_000
    appended_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    appended_tokens: tuple[float, ...] = (250, 1500, 3279, 5600, 10475, 15000, 19000)
    appended_sigma: float = 0.16
    output: Lengths = Lengths(median=144, sigma=0.74, low=1, high=1200)
    no_gap: float = 0.386
    gap_median_s: float = float(np.exp(0.539))
    gap_sigma: float = 0.603
    max_gap_s: float = 7.5
    max_context: int = 214_700


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """
    One call of an episode.

    :param appended_tokens: what its prompt has beyond the one before, answer of that included
    :param gap_ns: between the answer before and this call [ns]
    """

    appended_tokens: int
    output_tokens: int
    gap_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTrace:
    """An episode to be run; its first turn appends to nothing."""

    episode: str
    robot: str
    turns: tuple[Turn, ...]


def draw_episode(model: TraceModel, seed: int, robot: int, number: int) -> EpisodeTrace:
    """
    Return an episode: always the same one for the same arguments, whoever runs before it.

    :param number: of the episode among those of its robot, from 0
    """
    name = f'robot_{robot:02d}'
    random = np.random.default_rng((seed, zlib.crc32(name.encode()), number))
    turns = int(model.turns.draw(random, 1)[0])
    factor = random.lognormal(0.0, model.appended_sigma)
    quantiles = np.interp(random.random(turns), model.appended_shares, model.appended_tokens)
    appended = np.maximum(np.rint(factor * quantiles), 1).astype(np.int64)
    appended[0] = model.first_prompt.draw(random, 1)[0]
    output = model.output.draw(random, turns)
    gaps = np.minimum(
        random.lognormal(np.log(model.gap_median_s), model.gap_sigma, turns), model.max_gap_s
    )
    gaps[random.random(turns) < model.no_gap] = 0.0
    gaps[0] = 0.0
    return EpisodeTrace(
        episode=f'{name}/{number}',
        robot=name,
        turns=tuple(
            Turn(appended_tokens=int(a), output_tokens=int(o), gap_ns=int(g * NS))
            for a, o, g in zip(appended, output, gaps, strict=True)
        ),
    )
