# SPDX-License-Identifier: Apache-2.0
"""Normalisation between robot units and model space, by statistics of a data set."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.floating]

_SMALLEST_SPAN = 1e-8


class Statistics(Protocol):
    """
    What a feature is normalised by. Both directions compute in float64 and return float32.

    ``values`` have the shape ``(..., dim)``.
    """

    @property
    def dim(self) -> int:
        """Return the number of joints."""
        ...

    def normalise(self, values: Numbers) -> Floats:
        """Return robot units in model space, not clipped."""
        ...

    def unnormalise(self, values: Numbers) -> Floats:
        """Return the inverse of ``normalise``."""
        ...

    def selected(self, dim: int) -> 'Statistics':
        """Return the statistics of the first ``dim`` joints."""
        ...

    def described(self, joint: int) -> str:
        """Return what one joint is normalised by, for a person."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileStatistics:
    """
    Two values of each joint over a data set: its 1 % and 99 % quantiles, or others that say so.

    Published modes QUANTILES, QUANTILE10 (10 % and 90 %) and MIN_MAX differ in nothing else.

    :param q01: ``(dim,)`` float, robot units, becomes -1
    :param q99: ``(dim,)`` float, robot units, becomes 1
    :param margin: added to the span; openpi adds 1e-6, LeRobot nothing
    :raises ValueError: if shapes differ, a value is not finite or ``q99`` is below ``q01``
    """

    q01: Numbers
    q99: Numbers
    margin: float = 0.0

    def __post_init__(self) -> None:
        """Refuse statistics that can not be meant."""
        _check_shapes('q01', self.q01, 'q99', self.q99)
        _check_joints('q01', self.q01, 'q99', self.q99, self.q99 >= self.q01, 'q99 not below q01')

    @property
    def dim(self) -> int:
        """Return the number of joints."""
        return len(self.q01)

    @property
    def span(self) -> npt.NDArray[np.float64]:
        """Return ``q99 - q01`` and the margin, never 0."""
        span = self.q99.astype(np.float64) - self.q01 + self.margin
        return np.where(span == 0.0, _SMALLEST_SPAN, span)

    def normalise(self, values: Numbers) -> Floats:
        """Return ``2 (x - q01) / (q99 - q01) - 1``. Source: openpi and LeRobot, QUANTILES."""
        low = self.q01.astype(np.float64)
        return (2.0 * (values - low) / self.span - 1.0).astype(np.float32)

    def unnormalise(self, values: Numbers) -> Floats:
        """Return the inverse of ``normalise``."""
        low = self.q01.astype(np.float64)
        return ((values.astype(np.float64) + 1.0) / 2.0 * self.span + low).astype(np.float32)

    def selected(self, dim: int) -> 'QuantileStatistics':
        """Return the statistics of the first ``dim`` joints."""
        return QuantileStatistics(q01=self.q01[:dim], q99=self.q99[:dim], margin=self.margin)

    def described(self, joint: int) -> str:
        """Return what one joint is normalised by, for a person."""
        return f'{self.q01[joint]:.6g} becomes -1, {self.q99[joint]:.6g} becomes 1'


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStdStatistics:
    """
    Mean and standard deviation of each joint over a data set.

    :param mean: ``(dim,)`` float, robot units, becomes 0
    :param std: ``(dim,)`` float, robot units, becomes the distance 1
    :param margin: added to the deviation; openpi has 1e-6, LeRobot 1e-8
    :raises ValueError: if shapes differ, a value is not finite or a deviation is negative
    """

    mean: Numbers
    std: Numbers
    margin: float = _SMALLEST_SPAN

    def __post_init__(self) -> None:
        """Refuse statistics that can not be meant."""
        _check_shapes('mean', self.mean, 'std', self.std)
        _check_joints('mean', self.mean, 'std', self.std, self.std >= 0.0, 'std not negative')

    @property
    def dim(self) -> int:
        """Return the number of joints."""
        return len(self.mean)

    def normalise(self, values: Numbers) -> Floats:
        """Return ``(x - mean) / std``. Source: openpi and LeRobot, MEAN_STD."""
        mean, std = self.mean.astype(np.float64), self.std.astype(np.float64) + self.margin
        return ((values - mean) / std).astype(np.float32)

    def unnormalise(self, values: Numbers) -> Floats:
        """Return the inverse of ``normalise``."""
        mean, std = self.mean.astype(np.float64), self.std.astype(np.float64) + self.margin
        return (values.astype(np.float64) * std + mean).astype(np.float32)

    def selected(self, dim: int) -> 'MeanStdStatistics':
        """Return the statistics of the first ``dim`` joints."""
        return MeanStdStatistics(mean=self.mean[:dim], std=self.std[:dim], margin=self.margin)

    def described(self, joint: int) -> str:
        """Return what one joint is normalised by, for a person."""
        return f'{self.mean[joint]:.6g} becomes 0, {self.std[joint]:.6g} more becomes 1'


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStatistics:
    """
    A feature that the model takes in robot units, published mode IDENTITY.

    :param dim: number of joints
    """

    dim: int

    def normalise(self, values: Numbers) -> Floats:
        """Return the values as they are."""
        return values.astype(np.float32)

    def unnormalise(self, values: Numbers) -> Floats:
        """Return the values as they are."""
        return values.astype(np.float32)

    def selected(self, dim: int) -> 'NoStatistics':
        """Return the statistics of the first ``dim`` joints."""
        return NoStatistics(dim=dim)

    def described(self, joint: int) -> str:
        """Return what one joint is normalised by, for a person."""
        return 'as it is'


def normalise(values: Numbers, statistics: Statistics) -> Floats:
    """Return ``values`` ``(..., dim)`` of robot units in model space."""
    return statistics.normalise(values)


def unnormalise(values: Numbers, statistics: Statistics) -> Floats:
    """Return ``values`` ``(..., dim)`` of model space in robot units."""
    return statistics.unnormalise(values)


def _check_shapes(name: str, values: Numbers, other_name: str, others: Numbers) -> None:
    if values.ndim != 1 or values.shape != others.shape:
        raise ValueError(
            f'{name} has shape {values.shape} and {other_name} {others.shape}; '
            'both must be (action_dim,)'
        )


def _check_joints(
    name: str,
    values: Numbers,
    other_name: str,
    others: Numbers,
    good: npt.NDArray[np.bool_],
    rule: str,
) -> None:
    wrong = ~(np.isfinite(values) & np.isfinite(others) & good)
    if wrong.any():
        joint = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f'joint {joint}: {name} = {values[joint]} and {other_name} = {others[joint]}; '
            f'both must be finite and {rule}'
        )
