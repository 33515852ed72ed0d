# SPDX-License-Identifier: Apache-2.0
"""Writes msgpack with numpy arrays in the form that openpi's robots read."""

from typing import Any

import msgpack
import numpy as np


def pack(value: object) -> bytes:
    """
    Return a value as one message.

    :param value: dictionaries, lists, text, numbers and arrays of numbers, in any nesting
    """
    packed: bytes = msgpack.packb(value, default=_plain)
    return packed


def _plain(value: object) -> Any:
    """Return an array as the map that stands for it."""
    if isinstance(value, np.ndarray) and value.dtype.kind in 'biuf':
        return {
            b'__ndarray__': True,
            b'data': value.tobytes(),
            b'dtype': value.dtype.str,
            b'shape': value.shape,
        }
    raise TypeError(f'{type(value).__name__} can not be packed')
