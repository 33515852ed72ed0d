# SPDX-License-Identifier: Apache-2.0
"""Positions of Qwen2.5-VL: words on a line, pictures on a plane, in three coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from xinfer_ros.models.gemma import Angles


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureTokens:
    """
    Where the tokens of all pictures of a request are in their pictures; ``V`` tokens in all.

    :param row: ``(V,)`` integers
    :param column: ``(V,)`` integers
    :param span: ``(V,)`` integers, the positions that the picture takes on the line, at its last
        token; 0 elsewhere
    :param picture: ``(V,)`` integers, which picture
    """

    row: Tensor
    column: Tensor
    span: Tensor
    picture: Tensor


def picture_tokens(
    grids: Sequence[tuple[int, int]], device: torch.device | str = 'cpu'
) -> PictureTokens:
    """Return the places of pictures of ``(rows, columns)`` tokens, one after the other."""
    parts = []
    for picture, (rows, columns) in enumerate(grids):
        index = torch.arange(rows * columns, device=device)
        span = torch.zeros_like(index)
        span[-1] = max(rows, columns)
        parts.append((index // columns, index % columns, span, torch.full_like(index, picture)))
    row, column, span, which = (torch.cat(part) for part in zip(*parts, strict=True))
    return PictureTokens(row=row, column=column, span=span, picture=which)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """
    A prompt with its pictures in place.

    :param source: ``(B, T)`` integers, which of the ``V`` picture tokens stands there
    :param positions: ``(3, B, T)`` integers: time, row and column
    :param marks: ``(B, T)`` int32: 0 for padding; 1 and the positions on the line that the token
        takes otherwise
    """

    source: Tensor
    positions: Tensor
    marks: Tensor


def place(is_picture: Tensor, present: Tensor, shown: Tensor, tokens: PictureTokens) -> Placed:
    """
    Return where everything is; the k-th place holder stands for the k-th token that is shown.

    A picture starts where the line is, spans it as far as its longer edge, and the line goes on
    behind it.

    :param is_picture: ``(B, T)`` bool, place holders
    :param present: ``(B, T)`` bool, False for padding
    :param shown: ``(B, pictures)`` bool, False where a camera is missing
    :param tokens: of all pictures, shown or not
    Source: published Qwen2.5-VL, rope index.
    """
    is_picture = is_picture & present
    ordinal = (is_picture.long().cumsum(1) - 1).clamp(min=0, max=len(tokens.row) - 1)
    source = _shown_first(shown[:, tokens.picture]).gather(1, ordinal)
    advance = torch.where(is_picture, tokens.span[source], torch.ones_like(source))
    advance = advance * present
    line = advance.cumsum(1) - advance
    row = torch.where(is_picture, tokens.row[source], torch.zeros_like(source))
    column = torch.where(is_picture, tokens.column[source], torch.zeros_like(source))
    positions = torch.stack((line, line + row, line + column))
    return Placed(
        source=source, positions=positions, marks=(present * (1 + advance)).to(torch.int32)
    )


def _shown_first(there: Tensor) -> Tensor:
    """
    Return picture tokens in the order in which place holders stand for them, ``(B, V)`` integers.

    Counted, not sorted: a sort may ask the device for values.

    :param there: ``(B, V)`` bool, False for tokens that are not shown; those come last
    """
    shown, hidden = there.long().cumsum(1), (~there).long().cumsum(1)
    place = torch.where(there, shown, shown[:, -1:] + hidden) - 1
    which = torch.arange(there.shape[1], device=there.device).expand_as(place)
    return torch.zeros_like(place).scatter_(1, place, which)


def next_position(marks: Tensor) -> Tensor:
    """Return the first free position on the line behind a prompt, ``(B,)``."""
    return (marks.long() - 1).clamp(min=0).sum(1)


def space_angles(
    positions: Tensor, head_dim: int, base: float, sections: tuple[int, int, int]
) -> Angles:
    """
    Return cosine and signed sine of the rotary angles.

    :param positions: ``(3, B, T)`` integers: time, row and column
    :param head_dim: width of a head
    :param base: of the frequencies
    :param sections: how many of the ``head_dim / 2`` pairs turn by time, row and column
    :returns: two arrays ``(B, 1, T, head_dim)``, as ``gemma.rope_angles`` does
    Source: published Qwen2.5-VL, M-RoPE.
    """
    exponent = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32)
    frequencies = base ** (-exponent / head_dim)
    turns = positions[..., None].float() * frequencies  # (3, B, T, pairs)
    parts = torch.split(turns, list(sections), dim=-1)
    pairs = torch.cat([part[axis] for axis, part in enumerate(parts)], dim=-1)[:, None]
    cosine, sine = pairs.cos(), pairs.sin()
    return torch.cat((cosine, cosine), dim=-1), torch.cat((-sine, sine), dim=-1)
