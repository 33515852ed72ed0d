# SPDX-License-Identifier: Apache-2.0
"""What the settings of every scheduling policy have in common, and their bounds."""

from dataclasses import dataclass, fields
from typing import ClassVar

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Counts, Rates

# of the numbers that are not simply at least 0
_BOUNDS = {
    'learning_rate': (0.0, 1.0),
    'horizon_ms': (0.01, 1e6),
    'sharpness_ms': (0.01, 1e6),
    'put_off_ms': (0.01, 1e8),
    'pacing_window_ms': (0.01, 1e6),
    'pacing_step_ms': (0.5, 1e6),
    'pacing_spread': (0.0, 1.0),
    'shed_share': (0.0, 1.0),
    'tries': (0, 63),
    'max_batch': (1, 16),
    'group': (1, 16),
    'depth': (1, 3),
    'fairness': (0.0, 8.0),
    'least_share': (0.001, 1.0),
    'flat': (0.1, 20.0),
    'fade': (0.0, 20.0),
    'floor': (0.0, 1.0),
    'context_share': (0.0, 0.95),
}
_CHOICES = {'objective': ('starvation', 'steps', 'page')}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """
    What every scheduling policy is told.

    :param interference_model: whether predictions look up the load; if not, all work runs alone
    :param learning_rate: of the online correction of stage times, 0 to trust the calibration
    :param stage_overlap: whether units of different stages run at once (an ablation if not)
    :param max_held: requests that may be between the start of ViT and their end, as many as the
        device has states for; 0 for any number
    """

    name: ClassVar[str] = ''
    algorithm: ClassVar[str] = ''  # what is built, if several names share it
    batches: ClassVar[bool] = False  # whether it issues units of several requests
    interference_model: bool = True
    learning_rate: float = 0.0
    stage_overlap: bool = True
    max_held: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool | tuple):
                continue
            if isinstance(value, str):
                if value not in (known := _CHOICES[field.name]):
                    raise ConfigError(
                        f'scheduling policy {self.name}: {field.name} is {value}; '
                        f'one of {", ".join(known)} is allowed'
                    )
                continue
            least, most = _BOUNDS.get(field.name, (0.0, 1e6))
            if not least <= value <= most:
                raise ConfigError(
                    f'scheduling policy {self.name}: {field.name} is {value}; '
                    f'{least:g} to {most:g} is allowed'
                )

    @classmethod
    def of(cls, calibration: Calibration) -> 'PolicySettings':
        """Return the defaults for a device."""
        return cls()

    def limits(self, calibration: Calibration) -> Counts:
        """Return how many units may run at once on each lane."""
        return calibration.bound

    def capacity_per_ms(self, calibration: Calibration) -> float:
        """Return the responses per ms that this policy gives at most."""
        return calibration.batched_per_ms if self.batches else calibration.saturated_per_ms

    def device_rates(self, rates: Rates) -> Rates:
        """
        Return the rates at which units progress when this policy divides the device.

        :param rates: of the undivided device, shape ``(3, cV + 1, cP + 1, cA + 1)``
        """
        return rates
