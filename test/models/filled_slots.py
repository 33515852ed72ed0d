# SPDX-License-Identifier: Apache-2.0
"""Slots filled with reproducible requests, for the tests of models."""

import numpy as np

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.models.normalise import QuantileStatistics, unnormalise


def empty_slots(contract: ModelContract, num_slots: int) -> SlotArrays:
    """Return zeroed slots in memory of their own."""
    size = slot_memory_bytes(contract, num_slots)
    return slot_arrays(contract, num_slots, memoryview(bytearray(size)))


def write_instruction(slots: SlotArrays, slot: int, text: str) -> None:
    """Put an instruction into a slot."""
    encoded = text.encode()
    slots.instruction[slot] = 0
    slots.instruction[slot, : len(encoded)] = memoryview(encoded)
    slots.instruction_bytes[slot] = len(encoded)


def write_request(
    slots: SlotArrays,
    slot: int,
    seed: int,
    *,
    statistics: QuantileStatistics | None = None,
    leftover_steps: int = 0,
    commitment_steps: int = 0,
) -> None:
    """Fill a slot with random inputs that depend on ``seed`` alone; all cameras are there."""
    generator = np.random.default_rng(seed)
    for image in slots.images:
        image[slot] = generator.integers(0, 256, image.shape[1:], np.uint8)
    slots.camera_present[slot] = True
    dim = slots.state.shape[1]
    rows = generator.uniform(-0.9, 0.9, (slots.leftover.shape[1] + 1, dim)).astype(np.float32)
    if statistics is not None:
        rows = unnormalise(rows, statistics)
    slots.state[slot], slots.leftover[slot] = rows[0], rows[1:]
    slots.leftover[slot, leftover_steps:] = rows[leftover_steps]
    slots.leftover_steps[slot] = leftover_steps
    slots.commitment_steps[slot] = commitment_steps
    slots.seed[slot] = seed
    write_instruction(slots, slot, f'stack {seed} cubes' + ' please' * (seed % 3))
