# SPDX-License-Identifier: Apache-2.0
"""How large the contexts of some episodes will be over their next turns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MOST_TURNS = 256
PRIOR_WEIGHT = 2.0  # episodes that the assumed length counts for
SHAPE, SCALE = 3.0, 1.12  # of lengths that are assumed (Weibull): most are near the typical one
FIRST_WEIGHT, MEMORY = 3, 200  # turns for which what is assumed counts; that are remembered


class Survival:
    """
    How long episodes last, learned from those that have ended (Kaplan and Meier 1958).

    :param typical_turns: length that is assumed before any has ended
    """

    def __init__(self, typical_turns: float) -> None:
        scale = typical_turns * SCALE
        hazard = SHAPE / scale * (np.arange(MOST_TURNS) / scale) ** (SHAPE - 1.0)
        self._ended = PRIOR_WEIGHT * np.minimum(hazard, 0.95)
        self._at_risk = np.full(MOST_TURNS, PRIOR_WEIGHT)
        self._curve = self._survival()

    def turn_ended(self, number: int) -> None:
        """Take note that an episode has had its turn of this number, from 1."""
        self._at_risk[min(number, MOST_TURNS - 1)] += 1.0

    def episode_ended(self, turns: int) -> None:
        """Take note that an episode is over after so many turns."""
        self._ended[min(turns, MOST_TURNS - 1)] += 1.0
        self._curve = self._survival()

    def alive(self, turns: npt.NDArray[np.int64], ahead: int) -> npt.NDArray[np.float64]:
        """
        Return how probable it is that episodes still run after so many more turns.

        :param turns: that each of them has had, ``(n,)``
        :returns: shares ``(n, ahead + 1)``, 1 in the first column
        """
        now = np.minimum(turns, MOST_TURNS - ahead - 1)
        later = self._curve[now[:, None] + np.arange(ahead + 1)]
        shares: npt.NDArray[np.float64] = later / later[:, :1]
        return shares

    def _survival(self) -> npt.NDArray[np.float64]:
        hazard = np.minimum(self._ended / np.maximum(self._at_risk, self._ended), 0.95)
        curve: npt.NDArray[np.float64] = np.maximum(np.cumprod(1.0 - hazard), 1e-12)
        return curve


class Forecast:
    """
    Learns how episodes begin, grow and end, and adds up their contexts over the turns to come.

    :param typical_turns: length of an episode, until it is learned
    :param first_tokens: first prompt, until it is learned [tokens]
    :param growth_tokens: of a context from turn to turn, until it is learned [tokens]
    :param ahead: turns looked ahead
    """

    def __init__(
        self, typical_turns: float, first_tokens: float, growth_tokens: float, ahead: int
    ) -> None:
        self.first_tokens = first_tokens
        self.growth_tokens = growth_tokens
        self._survival = Survival(typical_turns)
        self._ahead = ahead
        self._steps = np.arange(ahead + 1, dtype=np.float64)
        self._firsts = self._growths = FIRST_WEIGHT
        self.turns_seen = 0

    def assume(self, first_tokens: float, growth_tokens: float) -> None:
        """Begin with these where nothing has been learned yet [tokens]."""
        if self._firsts == FIRST_WEIGHT:
            self.first_tokens = first_tokens
        if self._growths == FIRST_WEIGHT:
            self.growth_tokens = growth_tokens

    def turn_ended(self, number: int, before: int | None, tokens: int | None) -> None:
        """
        Learn from a turn.

        :param number: of the turn in its episode, from 1
        :param before: the context before it, None for a first one [tokens]
        :param tokens: the context now, None if unknown [tokens]
        """
        self._survival.turn_ended(number)
        self.turns_seen += 1
        if tokens is None:
            return
        if before is None:
            self._firsts = min(self._firsts + 1, MEMORY)
            self.first_tokens += (tokens - self.first_tokens) / self._firsts
        else:
            self._growths = min(self._growths + 1, MEMORY)
            self.growth_tokens += (max(tokens - before, 0) - self.growth_tokens) / self._growths

    def episode_ended(self, turns: int) -> None:
        """Learn from the length of an episode; one that never had a turn teaches nothing."""
        if turns:
            self._survival.episode_ended(turns)

    def peak(self, episodes: Sequence[tuple[int, int]], deviations: float) -> float:
        """
        Return the largest sum of the contexts of some episodes, now or after a turn to come.

        It is uncertain who will have ended; a sum is the mean and some standard deviations.

        :param episodes: context now [tokens], and turns had, of each
        :param deviations: how many
        """
        if not episodes:
            return 0.0
        now = np.array(episodes, np.int64)
        grown = now[:, :1] + self.growth_tokens * self._steps
        alive = self._survival.alive(now[:, 1], self._ahead)
        held = grown * alive
        variance = (grown * held * (1.0 - alive)).sum(axis=0)
        return float((held.sum(axis=0) + deviations * np.sqrt(variance)).max())
