# SPDX-License-Identifier: Apache-2.0
"""The interface between the engine and a model, and what every implementation needs of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Protocol

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.chunk import Commitment
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Rejected

Refusals = dict[int, Rejected]


class StagedModel(Protocol):
    """
    A model as three stages over static slots.

    ``run`` is called from one thread for each worker of each stage, so different stages, and
    different workers of one stage, run at once, always on different slots and states: an
    implementation keeps no scratch memory that two workers share.
    """

    @property
    def contract(self) -> ModelContract:
        """Return the shapes that cross the border between robot and server."""
        ...

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """
        Take the slots and allocate what passes between the stages.

        :param slots: laid out for ``contract``; kept
        :param plan: how many units at once, and how large
        :raises ConfigError: if the arrays do not fit the contract
        """
        ...

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """
        Run one stage of some requests and return when it is done.

        ViT reads pictures, Prefill state and instruction, Action leftover, commitment and seed.
        Action writes ``slots.actions`` in robot units. What one member has wrong never touches
        another: it is refused, and the others are computed.

        :param stage: the stage, one of ``contract.stages``
        :param batch: its members, at least one
        :returns: slots whose request is refused, and why: REJECTED_INSTRUCTION if an instruction
            does not fit the model
        :raises ModelError: if the model is not bound or a stage came out of order
        """
        ...

    def warm_up(self) -> None:
        """Run every stage at every size of the plan until it is as fast as it gets."""
        ...


def frozen_steps(slots: SlotArrays, slot: int, max_commitment_steps: int) -> int:
    """Return the rows of the next chunk that must equal the leftover: ``d``, clamped [steps]."""
    commitment, leftover = int(slots.commitment_steps[slot]), int(slots.leftover_steps[slot])
    return Commitment.of(commitment, leftover, max_commitment_steps).frozen_steps


@contextmanager
def preserved_slot(slots: SlotArrays, slot: int) -> Iterator[None]:
    """Put everything in ``slot`` back as it was at the end of the block."""
    names = [field.name for field in fields(slots) if field.name != 'images']
    arrays = [*slots.images, *(getattr(slots, name) for name in names)]
    saved = [array[slot].copy() for array in arrays]
    try:
        yield
    finally:
        for array, before in zip(arrays, saved, strict=True):
            array[slot] = before


def write_sample(slots: SlotArrays, slot: int, instruction: str) -> None:
    """
    Fill ``slot`` with a harmless request: grey pictures, state 0, nothing left over.

    :param instruction: its UTF-8 must fit ``slots.instruction``
    """
    text = instruction.encode()[: slots.instruction.shape[1]]
    for image in slots.images:
        image[slot] = 128
    slots.camera_present[slot] = True
    slots.state[slot] = 0.0
    slots.instruction[slot, : len(text)] = memoryview(text)
    slots.instruction_bytes[slot] = len(text)
    slots.leftover[slot] = 0.0
    slots.leftover_steps[slot] = 0
    slots.commitment_steps[slot] = 0
    slots.seed[slot] = 0
