# SPDX-License-Identifier: Apache-2.0
"""Rotary positions of queries and keys that lie behind each other, turned at once."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """
    How joined queries, keys and values turn: ``x * cosine + partners of x * sine``.

    :param cosine: ``(B * T, width)`` float32; 1 for values, which stay as they are
    :param sine: alike, with its sign; 0 for values
    :param order: ``(width,)``, for each number the place of its partner
    """

    cosine: Tensor
    sine: Tensor
    order: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Return an array like ``x``, turned."""
        partners = x.index_select(1, self.order)
        return sum_of_products(x * self.cosine, partners, self.sine, x.dtype)


def turn_of(cosine: Tensor, sine: Tensor, *, heads: int, still: int, width: int) -> Turn:
    """
    Return the turn of heads behind each other.

    :param cosine: ``(B, 1, T, width)`` of the angles of one head
    :param sine: alike, that of the first half of a head with its sign changed
    :param heads: number of heads that turn, the first ones
    :param still: number of heads that stay as they are
    :param width: of a head, even
    """
    rest = (0, still * width)
    flat = (-1, heads * width)
    cosine, sine = (
        part.transpose(1, 2).expand(-1, -1, heads, -1).reshape(flat) for part in (cosine, sine)
    )
    places = torch.arange((heads + still) * width, device=cosine.device)
    return Turn(
        cosine=functional.pad(cosine, rest, value=1.0),
        sine=functional.pad(sine, rest),
        order=places.view(-1, 2, width // 2).flip(1).flatten(),
    )


def sum_of_products(added: Tensor, x: Tensor, y: Tensor, dtype: torch.dtype) -> Tensor:
    """
    Return ``added + x * y`` in a type.

    On a GPU that is one kernel whatever the types, if no gradient is asked for.
    """
    if dtype is torch.float32:
        return torch.addcmul(added, x, y)
    if torch.is_grad_enabled():
        return torch.addcmul(added, x, y).to(dtype)
    return torch.addcmul(added, x, y, out=torch.empty_like(x, dtype=dtype))
