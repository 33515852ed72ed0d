# SPDX-License-Identifier: Apache-2.0
"""How sure a figure is: intervals of shares, means and rates from a few episodes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: Quantile of the normal distribution for an interval of 95 %.
Z95 = 1.959964
RESAMPLES = 2000
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval of 95 %."""

    value: float
    low: float
    high: float


def share(successes: int, trials: int) -> Estimate:
    """
    Return a share with the interval of Wilson, which suits shares near 0 and 1.

    :param trials: at least 1
    """
    p, z2 = successes / trials, Z95**2
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z95 / (1 + z2 / trials) * sqrt(p * (1 - p) / trials + z2 / (4 * trials**2))
    low = 0.0 if successes == 0 else middle - half
    return Estimate(value=p, low=low, high=1.0 if successes == trials else middle + half)


def bootstrapped(trials: int, figure: Callable[[npt.NDArray[np.intp]], float]) -> Estimate:
    """
    Return a figure with the interval between the quantiles of its resamples.

    :param trials: number of episodes that are drawn from
    :param figure: of the episodes with some indices, which may stand there more than once; NaN
        where those give none
    """
    random = np.random.default_rng(SEED)
    drawn = [figure(random.integers(0, trials, trials)) for _ in range(RESAMPLES)]
    finite = np.array(drawn)[np.isfinite(drawn)]
    low, high = np.quantile(finite, (0.025, 0.975)) if len(finite) else (np.nan, np.nan)
    return Estimate(value=figure(np.arange(trials)), low=float(low), high=float(high))
