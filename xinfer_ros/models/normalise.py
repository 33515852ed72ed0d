# SPDX-License-Identifier: Apache-2.0
"""Quantile normalisation between robot units and model space."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_SMALLEST_SPAN = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileStatistics:
    """
    The 1 % and 99 % quantiles of each joint over a data set.

    :param q01: ``(action_dim,)`` float32, robot units, becomes -1
    :param q99: ``(action_dim,)`` float32, robot units, becomes 1
    :raises ValueError: if shapes differ, a value is not finite or ``q99`` is below ``q01``
    """

    q01: npt.NDArray[np.float32]
    q99: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        """Refuse statistics that can not be meant."""
        if self.q01.ndim != 1 or self.q01.shape != self.q99.shape:
            raise ValueError(
                f'q01 has shape {self.q01.shape} and q99 {self.q99.shape}; '
                'both must be (action_dim,)'
            )
        wrong = ~(np.isfinite(self.q01) & np.isfinite(self.q99) & (self.q99 >= self.q01))
        if wrong.any():
            joint = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f'joint {joint}: q01 = {self.q01[joint]} and q99 = {self.q99[joint]}; '
                'both must be finite and q99 not below q01'
            )

    @property
    def span(self) -> npt.NDArray[np.float32]:
        """Return ``q99 - q01``, never 0."""
        span = self.q99 - self.q01
        return np.where(span == 0.0, np.float32(_SMALLEST_SPAN), span)


def normalise(
    values: npt.NDArray[np.float32], statistics: QuantileStatistics
) -> npt.NDArray[np.float32]:
    """
    Return ``2 (x - q01) / (q99 - q01) - 1``.

    :param values: ``(..., action_dim)`` robot units
    :returns: ``(..., action_dim)`` float32, mostly in [-1, 1], not clipped
    Source: openpi and LeRobot, QUANTILES.
    """
    scaled = 2.0 * (values - statistics.q01) / statistics.span - 1.0
    return scaled.astype(np.float32)


def unnormalise(
    values: npt.NDArray[np.float32], statistics: QuantileStatistics
) -> npt.NDArray[np.float32]:
    """
    Return the inverse of ``normalise``.

    :param values: ``(..., action_dim)`` model space
    :returns: ``(..., action_dim)`` float32 robot units
    """
    return ((values + 1.0) / 2.0 * statistics.span + statistics.q01).astype(np.float32)
