# SPDX-License-Identifier: Apache-2.0
"""Which loads a calibration measures, and how many requests that takes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.core.batch import ByStage
from xinfer_ros.core.stage import Stage

MIN_UNITS, UNITS_A_WORKER = 10, 6  # of the stage that ends a run
BATCH_UNITS = 4  # batches are measured alone: fewer units tell as much


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """
    Units that are kept in flight.

    :param counts: units of each stage at once
    :param batch: requests in each
    """

    counts: ByStage
    batch: int = 1

    def units(self, stage: Stage) -> int:
        """Return the units of a stage after which a run has lasted long enough."""
        if self.batch > 1:
            return BATCH_UNITS
        return max(MIN_UNITS, UNITS_A_WORKER * self.counts[stage])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """
    The loads that are measured.

    :param stages: stages of the model
    :param workers: largest number of units at once of each stage
    :param batches: largest batch of each stage
    """

    stages: tuple[Stage, ...]
    workers: ByStage
    batches: ByStage

    @classmethod
    def of(cls, stages: Sequence[Stage], workers: ByStage, batches: ByStage) -> 'LoadPlan':
        """Return a plan for a model that may lack stages: of those one unit of one is assumed."""
        return cls(
            stages=tuple(stages),
            workers=_where(stages, workers),
            batches=_where(stages, batches),
        )

    def loads(self) -> list[Load]:
        """Return every number of units at once of the stages, and every larger batch alone."""
        ranges = [
            range(most + 1) if stage in self.stages else range(1)
            for stage, most in zip(Stage, self.workers, strict=True)
        ]
        together = [
            Load(counts=(vit, prefill, action))
            for vit, prefill, action in itertools.product(*ranges)
            if vit + prefill + action
        ]
        alone = [
            Load(counts=_one_of(stage), batch=size)
            for stage in self.stages
            for size in range(2, self.batches[stage] + 1)
        ]
        return together + alone

    def passages(self) -> list[int]:
        """Return the sizes of the batches that are taken through all stages."""
        return list(range(1, max(self.batches) + 1))

    @property
    def runs_of_a_round(self) -> int:
        """Return how many runs one round has."""
        return len(self.loads()) + len(self.passages())

    def slots(self) -> dict[Stage, list[int]]:
        """Return the slots that the units of each stage use, no two stages the same."""
        found, first = {}, 0
        for stage in Stage:
            count = self._num_slots(stage)
            found[stage] = list(range(first, first + count))
            first += count
        return found

    @property
    def num_slots(self) -> int:
        """Return the slots that are needed, all stages together."""
        return sum(self._num_slots(stage) for stage in Stage)

    def _num_slots(self, stage: Stage) -> int:
        workers, batch = self.workers[stage], self.batches[stage]
        if stage is Stage.VIT:  # its slots can be taken again and again
            return max(workers, batch)
        load = Load(counts=(workers, workers, workers))
        return max(load.units(stage), BATCH_UNITS * batch, max(self.batches))


def _one_of(stage: Stage) -> ByStage:
    vit, prefill, action = (int(other is stage) for other in Stage)
    return vit, prefill, action


def _where(stages: Sequence[Stage], numbers: ByStage) -> ByStage:
    vit, prefill, action = (
        number if stage in stages else 1 for stage, number in zip(Stage, numbers, strict=True)
    )
    return vit, prefill, action
