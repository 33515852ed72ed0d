# SPDX-License-Identifier: Apache-2.0
"""Statistics that a LeRobot data set tells of its columns."""

from typing import Any

import numpy as np
import numpy.typing as npt

_EVERY = 8  # frames; neighbours look alike
_STRIDE = 4  # pixels


def vector_stats(values: npt.NDArray[np.float32]) -> dict[str, Any]:
    """
    Return the statistics of a column.

    :param values: ``(T, J)``
    """
    return {
        'min': values.min(axis=0).tolist(),
        'max': values.max(axis=0).tolist(),
        'mean': values.mean(axis=0).tolist(),
        'std': values.std(axis=0).tolist(),
        'count': [len(values)],
    }


class PictureStats:
    """Collects the statistics of the pictures of a camera, from a sample of frames and pixels."""

    def __init__(self) -> None:
        self._seen = self._pixels = self._frames = 0
        self._low, self._high = np.ones(3), np.zeros(3)
        self._sum, self._squares = np.zeros(3), np.zeros(3)

    def take(self, rgb: npt.NDArray[np.uint8]) -> None:
        """
        Take in a picture.

        :param rgb: ``(height, width, 3)``
        """
        self._seen += 1
        if self._seen % _EVERY != 1:
            return
        pixels = rgb[::_STRIDE, ::_STRIDE].reshape(-1, 3) / 255.0
        self._frames, self._pixels = self._frames + 1, self._pixels + len(pixels)
        self._low = np.minimum(self._low, pixels.min(axis=0))
        self._high = np.maximum(self._high, pixels.max(axis=0))
        self._sum += pixels.sum(axis=0)
        self._squares += (pixels**2).sum(axis=0)

    def values(self) -> dict[str, Any]:
        """Return the statistics, each ``(3, 1, 1)`` in 0 to 1."""
        mean = self._sum / max(self._pixels, 1)
        std = np.sqrt(np.maximum(self._squares / max(self._pixels, 1) - mean**2, 0.0))
        found = {'min': self._low, 'max': self._high, 'mean': mean, 'std': std}
        shaped = {name: value.reshape(3, 1, 1).tolist() for name, value in found.items()}
        return {**shaped, 'count': [self._frames]}
