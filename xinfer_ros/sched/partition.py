# SPDX-License-Identifier: Apache-2.0
"""A device that is divided between Context and Action: rates on a part, and the best parting."""

from dataclasses import dataclass, replace

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Rates

SHARES = tuple(percent / 100 for percent in range(5, 100, 5))  # that are looked at
CONTEXT = (Stage.VIT, Stage.PREFILL)


def divided(rates: Rates, context_share: float) -> Rates:
    """
    Return the rates of a device of which Context has a share and Action the rest.

    Units of a part are only beside each other. Together they get no more than their share of what
    the whole device gives to the stage at most, ``max k rho_s(k)`` for ``k`` units of it.

    :param rates: of the undivided device, shape ``(3, cV + 1, cP + 1, cA + 1)``
    :param context_share: of ViT and Prefill, in (0, 1)
    """
    units, parted = np.indices(rates.shape[1:]), np.empty_like(rates)
    for stage in Stage:
        beside = np.moveaxis(rates[stage], stage, 0)[:-1, 0, 0]  # so many others of the stage
        most = float((np.arange(1, len(beside) + 1) * beside).max())
        mates = CONTEXT if stage in CONTEXT else (stage,)
        # nobody of the other part is beside it
        part = tuple(slice(None) if other in mates else slice(1) for other in Stage)
        share = context_share if stage in CONTEXT else 1.0 - context_share
        together = 1 + sum(units[other] for other in mates)
        parted[stage] = np.minimum(rates[stage][part], share * most / together[part])
    return parted


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTime:
    """
    The two halves of a round of full groups with one parting of the device [ms].

    :param share: of Context; 0: the device is not divided
    """

    share: float
    context_ms: float
    action_ms: float

    @property
    def round_ms(self) -> float:
        """Return the length of the round [ms]."""
        return max(self.context_ms, self.action_ms)


def round_times(calibration: Calibration, group: int) -> list[RoundTime]:
    """Return the offline table: the rounds of every parting, for groups of so many requests."""
    return [round_time(calibration, group, share) for share in SHARES]


def round_time(calibration: Calibration, group: int, share: float) -> RoundTime:
    """Return the round of full groups with one parting; 0: as if neither half felt the other."""
    rates = divided(calibration.rates, share) if share else calibration.rates
    parted = replace(calibration, rates=rates)
    vit, prefill, action = (group_ms(parted, stage, group) for stage in Stage)
    return RoundTime(share=share, context_ms=vit + prefill, action_ms=action)


def best_share(calibration: Calibration, group: int) -> float:
    """Return the share of Context with the shortest round."""
    return min(round_times(calibration, group), key=lambda time: time.round_ms).share


def group_ms(calibration: Calibration, stage: int, group: int) -> float:
    """Return how long a group takes in a stage: full units, as many at once as the lane takes."""
    work, size = calibration.batch_work[stage], len(calibration.batch_work[stage])
    units = [size] * (group // size) + ([group % size] if group % size else [])
    total = 0.0
    while units:
        now, units = units[: calibration.bound[stage]], units[calibration.bound[stage] :]
        beside = [len(now) - 1 if s == stage else 0 for s in Stage]
        slow = 1.0 / calibration.table.rate(stage, beside)
        longest = calibration.work_ms[stage] * work[max(now) - 1] * slow
        total += calibration.overhead_ms[stage] + longest
    return total
