# SPDX-License-Identifier: Apache-2.0
"""How fast a running stage goes beside others: the rate table, and one made of few parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError

Counts = tuple[int, int, int]
Rates = Annotated[npt.NDArray[np.float64], '(3, cV + 1, cP + 1, cA + 1)']


class RateTable:
    """
    Progress ``rho_s(n)`` of a unit of stage ``s`` beside ``n`` running units; 1 alone.

    Lookups beyond the bound are clipped to it.

    :param rates: shape ``(3, cV + 1, cP + 1, cA + 1)``, each in (0, 1.5]
    :raises ConfigError: if the array has another shape or a rate is out of range
    """

    def __init__(self, rates: Rates) -> None:
        if rates.ndim != 4 or rates.shape[0] != len(Stage) or min(rates.shape[1:]) < 2:
            raise ConfigError(
                f'a rate table of shape {rates.shape}; (3, cV + 1, cP + 1, cA + 1) is needed, '
                'with a bound of at least 1 for each stage'
            )
        if not (np.isfinite(rates).all() and (rates > 0.0).all() and (rates <= 1.5).all()):
            raise ConfigError('a rate table holds a rate that is not in (0, 1.5]')
        self.rates = rates
        self.bound: Counts = (rates.shape[1] - 1, rates.shape[2] - 1, rates.shape[3] - 1)
        self._values: list[list[list[list[float]]]] = rates.tolist()

    def rate(self, stage: int, counts: Sequence[int]) -> float:
        """Return ``rho_s(min(n, c))``."""
        bound = self.bound
        return self._values[stage][min(counts[0], bound[0])][min(counts[1], bound[1])][
            min(counts[2], bound[2])
        ]

    def rate_without(self, stage: int, counts: Sequence[int]) -> float:
        """Return ``rho_s(min([n - e_s]+, c))``: a unit of the stage is taken out, then clipped."""
        others = list(counts)
        others[stage] = max(others[stage] - 1, 0)
        return self.rate(stage, others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """
    A rate table of few parameters: a saturating device.

    ``1 / rho_s(n) = f^e_s (1 + k sum(n)) (1 + m n_s)`` with
    ``f = ((1 + x^q) / (1 + u_s^q))^(1/q)`` and ``x = u_s + sum_k u_k n_k``.

    :param bound: ``c``, units of each stage that the table knows
    :param demand: ``u_s``, share of the device that one unit asks for
    :param sharpness: ``q``, of the knee at saturation
    :param contention: ``k``, extra slow-down of each other unit
    :param same_stage_contention: ``m``, of each other unit of the same stage
    :param exponent: ``e_s``
    """

    bound: Counts
    demand: tuple[float, float, float]
    sharpness: float
    contention: float = 0.0
    same_stage_contention: float = 0.0
    exponent: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def rates(self) -> Rates:
        """Return the table, shape ``(3, cV + 1, cP + 1, cA + 1)``."""
        axes = [np.arange(c + 1, dtype=np.float64) for c in self.bound]
        n = np.stack(np.meshgrid(*axes, indexing='ij'), axis=-1)
        load, total, q = n @ np.array(self.demand), n.sum(axis=-1), self.sharpness
        tables = []
        for stage in Stage:
            own = self.demand[stage]
            knee = ((1.0 + (own + load) ** q) / (1.0 + own**q)) ** (1.0 / q)
            slow = (
                knee ** self.exponent[stage]
                * (1.0 + self.contention * total)
                * (1.0 + self.same_stage_contention * n[..., stage])
            )
            tables.append(1.0 / slow)
        return np.stack(tables)
