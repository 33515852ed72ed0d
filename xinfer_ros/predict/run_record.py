# SPDX-License-Identifier: Apache-2.0
"""What an engine did: every start and end of a unit, and whose requests it held."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration

Rows = npt.NDArray[np.int64]


class Change(IntEnum):
    """What a transition tells of its unit."""

    FAILED = -1
    ENDED = 0
    STARTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """
    What a run was a run of; texts for a person.

    :param policy: name of the scheduling policy
    :param model: name of the model
    :param date: day of the run, as 2026-01-31
    """

    policy: str
    model: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """
    A run as a decision log tells it.

    :param transitions: rows time [ns], unit, stage, size of the batch, ``Change``, by time; shape
        ``(m, 5)`` int64
    :param members: rows unit, request, robot; shape ``(k, 3)`` int64
    :param from_ns: since when nothing is missing: units that started before were running then [ns]
    :param calibration: what the scheduler believed of the device
    """

    transitions: Rows
    members: Rows
    from_ns: int
    calibration: Calibration
    facts: RunFacts

    def check_sizes(self, calibration: Calibration) -> None:
        """
        Refuse a calibration that does not know the batches of the run.

        :raises ConfigError: with the stage and the sizes
        """
        for stage in Stage:
            sizes = self.transitions[self.transitions[:, 2] == stage, 3]
            known = len(calibration.batch_work[stage])
            if sizes.max(initial=0) > known:
                raise ConfigError(
                    f'the run has batches of {sizes.max()} in {stage.name}, calibration '
                    f'{calibration.name} knows up to {known}'
                )
