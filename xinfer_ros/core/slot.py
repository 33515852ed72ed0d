# SPDX-License-Identifier: Apache-2.0
"""The memory that one request occupies, shared by the front end and the engine process."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.contract import ModelContract


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotArrays:
    """
    Structure-of-arrays over all slots; the first axis ``S`` is the slot.

    The front end writes every input before it announces the request; the engine writes
    ``actions`` before it announces the completion. Nobody else touches a slot in between, so no
    lock is needed.

    :param images: one array a camera, in the contract's order, ``(S, height, width, 3)`` uint8 RGB
    :param camera_present: ``(S, num_cameras)`` bool, False where the robot lacks the camera
    :param state: ``(S, action_dim)`` float32, robot units, the contract's joint order
    :param instruction: ``(S, max_instruction_bytes)`` uint8, UTF-8
    :param instruction_bytes: ``(S,)`` int32, used bytes of ``instruction``
    :param leftover: ``(S, H, action_dim)`` float32, robot units: the unexecuted tail of the
        running chunk, row 0 is executed next; rows past ``leftover_steps`` repeat the last one
    :param leftover_steps: ``(S,)`` int32, valid rows of ``leftover``; 0 means there is none
    :param commitment_steps: ``(S,)`` int32, ``d``: rows of the next chunk that are frozen
    :param seed: ``(S,)`` uint64, seed of the flow-matching noise of this request
    :param actions: ``(S, H, action_dim)`` float32, the answer, robot units
    """

    images: tuple[npt.NDArray[np.uint8], ...]
    camera_present: npt.NDArray[np.bool_]
    state: npt.NDArray[np.float32]
    instruction: npt.NDArray[np.uint8]
    instruction_bytes: npt.NDArray[np.int32]
    leftover: npt.NDArray[np.float32]
    leftover_steps: npt.NDArray[np.int32]
    commitment_steps: npt.NDArray[np.int32]
    seed: npt.NDArray[np.uint64]
    actions: npt.NDArray[np.float32]

    @property
    def num_slots(self) -> int:
        """Return the number of slots ``S``."""
        return int(self.state.shape[0])


_IMAGE_PREFIX = 'images/'
_Field = tuple[str, tuple[int, ...], type[np.generic]]


def _layout(contract: ModelContract, num_slots: int) -> tuple[_Field, ...]:
    """Return (name, shape, scalar type) of every array; the images come first."""
    horizon, dim = contract.horizon, contract.action_dim
    images: tuple[_Field, ...] = tuple(
        (f'{_IMAGE_PREFIX}{camera.name}', (num_slots, camera.height, camera.width, 3), np.uint8)
        for camera in contract.cameras
    )
    rest: tuple[_Field, ...] = (
        ('camera_present', (num_slots, len(contract.cameras)), np.bool_),
        ('state', (num_slots, dim), np.float32),
        ('instruction', (num_slots, contract.max_instruction_bytes), np.uint8),
        ('instruction_bytes', (num_slots,), np.int32),
        ('leftover', (num_slots, horizon, dim), np.float32),
        ('leftover_steps', (num_slots,), np.int32),
        ('commitment_steps', (num_slots,), np.int32),
        ('seed', (num_slots,), np.uint64),
        ('actions', (num_slots, horizon, dim), np.float32),
    )
    return images + rest


_ALIGNMENT_BYTES = 64


def slot_memory_bytes(contract: ModelContract, num_slots: int) -> int:
    """Return the size of the memory that ``slot_arrays`` needs [bytes]."""
    return sum(_padded_bytes(shape, dtype) for _, shape, dtype in _layout(contract, num_slots))


def _padded_bytes(shape: tuple[int, ...], dtype: type[np.generic]) -> int:
    """Return the room of one array, up to where the next one begins [bytes]."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def slot_arrays(contract: ModelContract, num_slots: int, memory: memoryview) -> SlotArrays:
    """
    Lay the slot arrays over a block of memory; both processes call it with the same contract.

    :param contract: the model's contract
    :param num_slots: number of slots
    :param memory: writable, at least ``slot_memory_bytes(contract, num_slots)`` long [bytes]
    :raises ValueError: if the memory is too small
    """
    needed = slot_memory_bytes(contract, num_slots)
    if len(memory) < needed:
        raise ValueError(f'slot memory has {len(memory)} bytes, {needed} are needed')
    images: list[Any] = []
    others: dict[str, Any] = {}
    offset = 0
    for name, shape, dtype in _layout(contract, num_slots):
        count = math.prod(shape)
        array = np.frombuffer(memory, dtype=dtype, count=count, offset=offset).reshape(shape)
        offset += _padded_bytes(shape, dtype)
        if name.startswith(_IMAGE_PREFIX):
            images.append(array)
        else:
            others[name] = array
    return SlotArrays(images=tuple(images), **others)
