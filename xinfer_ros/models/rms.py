# SPDX-License-Identifier: Apache-2.0
"""Root mean square norms, in float32 whatever the type of a token."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.joined import Prepared

EPSILON = 1e-6


def normalise_rms(
    x: Tensor, width: int, epsilon: float = EPSILON, small: Tensor | None = None
) -> Tensor:
    """
    Return ``x`` with a root mean square of 1 along its last axis.

    :param x: ``(..., width)``
    :param width: a number of Python's: a trace would ask for the size at every norm
    :param epsilon: what is added to the mean square before its root is taken
    :param small: the same number as a tensor ``()``, for callers that have many norms
    :returns: ``(..., width)`` float32
    """
    wide = x if x.dtype is torch.float32 else x.float()
    if x.is_cuda:
        return functional.rms_norm(wide, (width,), eps=epsilon)  # one kernel
    # A norm is one reduction; on a CPU torch's rms_norm runs six operations.
    length: Tensor = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    added = length.new_full((), epsilon) if small is None else small
    return wide * torch.addcmul(added, length, length, value=1.0 / width).rsqrt()


class RmsNorm(Prepared[Tensor]):
    """
    Root mean square norm whose scale is ``offset + weight``.

    :param width: of a token
    :param offset: 1 in Gemma
    :param epsilon: what is added to the mean square before its root is taken
    """

    def __init__(self, width: int, offset: float = 1.0, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.offset, self._width, self._epsilon = offset, width, epsilon

    @torch.no_grad()
    def prepare(self) -> None:
        """Add up the scale."""
        self._made = self.offset + self.weight.float()

    def forward(self, x: Tensor) -> Tensor:
        """Return an array like ``x``."""
        scale = self.offset + self.weight.float() if self._made is None else self._made
        normed = normalise_rms(x, self._width, self._epsilon) * scale
        return normed if x.dtype is torch.float32 else normed.to(x.dtype)
