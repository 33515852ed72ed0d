# SPDX-License-Identifier: Apache-2.0
"""Episodes of agents as they were published: how long they are, how they grow, how they pause."""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError

NS = 1_000_000_000
MOST_TURNS, MOST_TOKENS, MOST_SIGMA = 1000, 10_000_000, 3.0


def _check_sigma(name: str, sigma: float) -> None:
    if not 0.0 <= sigma <= MOST_SIGMA:
        raise ConfigError(f'{name} is {sigma:g}; 0 to {MOST_SIGMA:g} is allowed')


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """
    A lognormal distribution of whole numbers, cut at both ends.

    :raises ConfigError: if the median is cut away
    """

    median: float
    sigma: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse ends that leave nothing."""
        if not 1 <= self.low <= self.median <= self.high <= MOST_TOKENS:
            raise ConfigError(
                f'low, median, high are {self.low:g}, {self.median:.4g}, {self.high:g}; '
                f'1 <= low <= median <= high <= {MOST_TOKENS:,} is needed'
            )
        _check_sigma('sigma', self.sigma)

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
    :raises ConfigError: if one of them makes no sense
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

    def __post_init__(self) -> None:
        """Refuse what no episodes can be drawn from."""
        shares, tokens = self.appended_shares, self.appended_tokens
        if not (shares[0] == 0.0 and shares[-1] == 1.0 and list(shares) == sorted(shares)):
            raise ConfigError(f'appended_shares are {shares}; they must rise from 0 to 1')
        if not (list(tokens) == sorted(tokens) and tokens[-1] <= MOST_TOKENS):
            raise ConfigError(
                f'appended_tokens are {tokens}; they must rise, to {MOST_TOKENS:,} at most'
            )
        if self.turns.high > MOST_TURNS:
            raise ConfigError(f'turns are up to {self.turns.high:g}; {MOST_TURNS} is allowed')
        if not (self.no_gap <= 1.0 and 1e-3 <= self.gap_median_s <= self.max_gap_s):
            raise ConfigError(
                f'no_gap is {self.no_gap}, gap_median_s {self.gap_median_s:g}; no_gap <= 1 and '
                f'0.001 <= gap_median_s <= max_gap_s, {self.max_gap_s:g}, are needed'
            )
        if not self.first_prompt.median <= self.max_context <= MOST_TOKENS:
            raise ConfigError(
                f'max_context is {self.max_context:,}; allowed: {self.first_prompt.median:,.0f}, '
                f'a first prompt, to {MOST_TOKENS:,}'
            )
        for name in ('appended_sigma', 'gap_sigma'):
            _check_sigma(name, getattr(self, name))


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
