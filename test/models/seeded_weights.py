# SPDX-License-Identifier: Apache-2.0
"""Random weights that depend on a name and a shape alone; needs nothing but numpy."""

import zlib

import numpy as np
import numpy.typing as npt


def seeded_weight(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """
    Return weights that keep the size of signals from layer to layer.

    Numpy promises that this generator's stream never changes.

    :param name: published name; norms are told by it
    :param shape: of the weight
    :returns: float32; norms near 1, biases near 0, matrices with a variance of 1 / inputs
    """
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    if len(shape) > 1:
        fan_in = 1 if 'embed_tokens' in name else int(np.prod(shape[1:]))
        return (drawn / fan_in**0.5).astype(np.float32)
    is_scale = name.endswith('weight')
    return (0.1 * drawn + (1.0 if is_scale else 0.0)).astype(np.float32)


def seeded_array(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return standard normal inputs, float32."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    return drawn.astype(np.float32)
