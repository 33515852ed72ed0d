# SPDX-License-Identifier: Apache-2.0
"""Memory that never moves, through which numpy arrays reach a device and come back."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_ALIGNMENT_BYTES = 64  # views of any type may begin there


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """
    One array of an area.

    :param name: in the area
    :param shape: of the array
    :param dtype: a numpy type that torch knows too
    :param fill: what it holds at first
    """

    name: str
    shape: tuple[int, ...]
    dtype: type[np.generic]
    fill: int = 0

    @property
    def num_bytes(self) -> int:
        """Return the size of the array [bytes]."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Area:
    """
    Some arrays in one block of host memory, and the same block on the device.

    One block is one copy, whatever the number of arrays. The host's block is pinned where the
    device is a CUDA one, so copies do not hold up the thread that asks for them.

    :param fields: the arrays
    :param device: where the other block lies; None if the host's block serves both
    """

    def __init__(self, fields: Iterable[Field], device: torch.device | None) -> None:
        fields = tuple(fields)
        starts = [0]
        for field in fields:
            room = -(-field.num_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            starts.append(starts[-1] + room)
        pinned = device is not None and device.type == 'cuda'
        self._host = torch.zeros(starts[-1], dtype=torch.uint8, pin_memory=pinned)
        self._device = self._host if device is None else self._host.to(device, copy=True)
        self.arrays: dict[str, npt.NDArray] = {}
        self.tensors: dict[str, Tensor] = {}
        for field, start in zip(fields, starts, strict=False):
            array = self._host[start : start + field.num_bytes].numpy()
            self.arrays[field.name] = array.view(field.dtype).reshape(field.shape)
            self.arrays[field.name][...] = field.fill
            dtype = torch.from_numpy(np.empty(0, field.dtype)).dtype
            tensor = self._device[start : start + field.num_bytes]
            self.tensors[field.name] = tensor.view(dtype).view(field.shape)

    def upload(self) -> None:
        """Bring the host's block to the device, in the order of the current stream."""
        if self._device is not self._host:
            self._device.copy_(self._host, non_blocking=True)

    def download(self) -> None:
        """Bring the device's block to the host, in the order of the current stream."""
        if self._device is not self._host:
            self._host.copy_(self._device, non_blocking=True)
