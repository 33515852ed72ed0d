# SPDX-License-Identifier: Apache-2.0
"""What the simulated world does differently from what the scheduler's calibration says."""

from dataclasses import dataclass, fields

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Rates

_MOST = {
    'stagger': 1.0,
    'work_sd': 2.0,
    'mismatch_sd': 2.0,
    'front_end_sd': 2.0,
    'network_sd': 2.0,
    'mismatch_seed': 2**32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    Noise, mismatch and delays. The defaults were fitted to tables 8 to 11 of XInfer.

    :param work_sd: log-sd of the work of each unit
    :param mismatch_sd: log-sd of true rates over those of the table, a fixed smooth field
    :param mismatch_seed: seed of that field
    :param slowdown: factor by which the true device is slower than its table everywhere
    :param front_end_ms: mean CPU preparation of a request
    :param front_end_sd: log-sd of it
    :param network_ms: mean delay of one way
    :param network_sd: log-sd of it
    :param observation_ms: time from the end of a unit until the scheduler knows
    :param stagger: 0: first sends evenly over one period, 1: at random
    :param jitter_ms: sd of each robot's period
    :param tick_ms: period in which waiting work is looked at again
    """

    work_sd: float = 0.12796006004360108
    mismatch_sd: float = 0.09117068825524502
    mismatch_seed: int = 1
    slowdown: float = 1.0
    front_end_ms: float = 7.2120325966514445
    front_end_sd: float = 0.2
    network_ms: float = 1.8
    network_sd: float = 0.3
    observation_ms: float = 0.9
    stagger: float = 0.203631464575883
    jitter_ms: float = 0.0
    tick_ms: float = 2.0

    def __post_init__(self) -> None:
        """Refuse numbers under which time would stand still or run backwards."""
        for name in ('slowdown', 'tick_ms'):
            if not 0.01 <= getattr(self, name) <= 1000.0:
                raise ConfigError(
                    f'world: {name} is {getattr(self, name)}; 0.01 to 1000 is allowed'
                )
        for field in fields(self):
            value, most = getattr(self, field.name), _MOST.get(field.name, 60_000.0)
            if not 0.0 <= value <= most:
                raise ConfigError(f'world: {field.name} is {value}; 0 to {most:g} is allowed')

    def true_rates(self, calibration: Calibration) -> Rates:
        """Return the rates at which units really progress, shape as in the calibration."""
        field = _smooth_field(calibration.rates.shape, self.mismatch_seed)
        rates: Rates = calibration.rates * np.exp(-self.mismatch_sd * field) / self.slowdown
        return rates


def _smooth_field(shape: tuple[int, ...], seed: int) -> Rates:
    """Return a Gaussian field of unit variance, smooth over neighbouring loads."""
    field = np.random.default_rng(seed).standard_normal(shape)
    for axis in range(1, len(Stage) + 1):
        at = np.arange(shape[axis], dtype=np.float64)
        kernel = np.exp(-0.5 * (at[:, None] - at[None, :]) ** 2)
        kernel /= np.sqrt((kernel**2).sum(axis=1, keepdims=True))
        field = np.moveaxis(np.tensordot(kernel, field, axes=(1, axis)), 0, axis)
    return field
