# SPDX-License-Identifier: Apache-2.0
"""What a lane hands to a model: the members of a unit, and what it may expect at most."""

from dataclasses import dataclass

ByStage = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """
    The members of one unit.

    :param slot_ids: slots that hold their inputs and take their answers, no two alike
    :param state_ids: where the model keeps what passes from stage to stage, one a member
    :param worker: which worker of the lane runs the unit, from 0; no two units at once have the
        same worker of the same stage
    """

    slot_ids: tuple[int, ...]
    state_ids: tuple[int, ...]
    worker: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlan:
    """
    What a model must be ready for before it is warm.

    :param workers: units that may run at once in each stage
    :param max_batch: members of the largest unit of each stage; every smaller size occurs too
    :param num_states: requests that may be between the start of ViT and the end of Action
    """

    workers: ByStage = (1, 1, 1)
    max_batch: ByStage = (1, 1, 1)
    num_states: int
