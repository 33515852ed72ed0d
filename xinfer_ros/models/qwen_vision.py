# SPDX-License-Identifier: Apache-2.0
"""The vision tower of Qwen2.5-VL: windowed attention, two-dimensional rotation, merged patches."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.gemma import Angles, rotate
from xinfer_ros.models.rms import RmsNorm

_EPSILON = 1e-6
_ROPE_BASE = 10000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenVisionConfig:
    """
    Sizes of the vision tower. Pictures may have any size that ``edge`` divides.

    :param hidden: width of a token
    :param layers: number of layers
    :param mlp: width of the hidden layer of the MLP
    :param heads: number of attention heads
    :param patch: edge of a patch [pixels]
    :param frames: pictures of a film that a patch spans; a single picture is shown as often
    :param merge: edge of the square of patches that becomes one token of the language model
    :param window: edge of an attention window [pixels]
    :param full_layers: layers whose tokens see the whole picture
    :raises ValueError: if the heads do not tile the width or the patches do not tile a window
    """

    hidden: int
    layers: int
    mlp: int
    heads: int
    patch: int = 14
    frames: int = 2
    merge: int = 2
    window: int = 112
    full_layers: tuple[int, ...] = (7, 15, 23, 31)

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        if self.hidden % (4 * self.heads):
            raise ValueError(
                f'{self.heads} heads do not divide a width of {self.hidden} into multiples of 4'
            )
        if self.window % self.edge:
            raise ValueError(f'merged patches of {self.edge} pixels do not tile {self.window}')

    @property
    def edge(self) -> int:
        """Return the edge of the square that becomes one token [pixels]."""
        return self.patch * self.merge

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """
        Return rows and columns of merged tokens of a picture [tokens].

        :raises ValueError: if they do not tile it
        """
        if height % self.edge or width % self.edge:
            raise ValueError(
                f'merged patches of {self.edge} pixels do not tile a picture of {height}x{width}'
            )
        return height // self.edge, width // self.edge


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPlan:
    """
    Where the patches of a picture are; patches of one merged token follow each other.

    :param angles: rotary angles, to broadcast over pictures and heads
    :param apart: ``(1, 1, T, T)``, minus infinity between patches of different windows, else 0
    """

    angles: Angles
    apart: Tensor


def patch_plan(config: QwenVisionConfig, rows: int, columns: int, like: Tensor) -> PatchPlan:
    """
    Return the plan of a picture of ``rows x columns`` merged tokens.

    :param like: a tensor of the model's device and type
    Source: published Qwen2.5-VL, windows from the upper left, smaller ones at the edges.
    """
    inner = torch.arange(config.merge, device=like.device)
    row = torch.arange(rows, device=like.device)[:, None, None, None] * config.merge
    column = torch.arange(columns, device=like.device)[None, :, None, None] * config.merge
    shape = (rows, columns, config.merge, config.merge)
    places = torch.stack(
        (
            (row + inner[:, None]).expand(shape).flatten(),
            (column + inner).expand(shape).flatten(),
        )
    )
    tiles = places // (config.window // config.patch)
    same = (tiles[:, :, None] == tiles[:, None, :]).all(0)
    apart = torch.zeros_like(same, dtype=like.dtype).masked_fill_(~same, -torch.inf)
    return PatchPlan(
        angles=_plane_angles(places, config.hidden // config.heads), apart=apart[None, None]
    )


def _plane_angles(places: Tensor, head_dim: int) -> Angles:
    """Return the angles of places ``(2, T)``: half of the pairs turn by row, half by column."""
    exponent = torch.arange(0, head_dim // 2, 2, device=places.device, dtype=torch.float32)
    frequencies = _ROPE_BASE ** (-exponent / (head_dim // 2))
    turns = places[..., None].float() * frequencies  # (2, T, head_dim / 4)
    both = torch.cat((turns[0], turns[1]), dim=-1)
    cosine, sine = both.cos(), both.sin()
    return torch.cat((cosine, cosine), dim=-1), torch.cat((-sine, sine), dim=-1)


class QwenVisionBlock(nn.Module):
    """One pre-norm layer."""

    def __init__(self, config: QwenVisionConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = RmsNorm(config.hidden, 0.0, _EPSILON)
        self.norm2 = RmsNorm(config.hidden, 0.0, _EPSILON)
        self.attn = nn.ModuleDict(
            {
                'qkv': nn.Linear(config.hidden, 3 * config.hidden),
                'proj': nn.Linear(config.hidden, config.hidden),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                'gate_proj': nn.Linear(config.hidden, config.mlp),
                'up_proj': nn.Linear(config.hidden, config.mlp),
                'down_proj': nn.Linear(config.mlp, config.hidden),
            }
        )

    def forward(self, x: Tensor, angles: Angles, apart: Tensor | None) -> Tensor:
        """
        Return tokens like ``x``.

        :param x: ``(N, T, hidden)``
        :param apart: added to the scores, None where every token sees every other
        """
        n, tokens, hidden = x.shape
        mixed = self.attn['qkv'](self.norm1(x)).view(n, tokens, 3, self.heads, -1)
        queries, keys, values = mixed.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            rotate(queries, angles), rotate(keys, angles), values, attn_mask=apart
        )
        x = x + self.attn['proj'](seen.transpose(1, 2).reshape(n, tokens, hidden))
        normed = self.norm2(x)
        gate = functional.silu(self.mlp['gate_proj'](normed))
        found: Tensor = x + self.mlp['down_proj'](gate * self.mlp['up_proj'](normed))
        return found


class QwenMerger(nn.Module):
    """Norm, then the patches of a square through two layers into one token."""

    def __init__(self, config: QwenVisionConfig, out: int) -> None:
        super().__init__()
        self.width = config.hidden * config.merge**2
        self.ln_q = RmsNorm(config.hidden, 0.0, _EPSILON)
        self.mlp = nn.Sequential(
            nn.Linear(self.width, self.width), nn.GELU(), nn.Linear(self.width, out)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(N, tokens, out)`` for patches ``(N, T, hidden)``."""
        found: Tensor = self.mlp(self.ln_q(x).reshape(x.shape[0], -1, self.width))
        return found


class QwenVision(nn.Module):
    """
    The tower.

    :param config: sizes
    :param out: width of the language model
    Source: published Qwen2.5-VL.
    """

    def __init__(self, config: QwenVisionConfig, out: int) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = nn.Conv3d(
            3, config.hidden, (config.frames, config.patch, config.patch), bias=False
        )
        self.blocks = nn.ModuleList(QwenVisionBlock(config) for _ in range(config.layers))
        self.merger = QwenMerger(config, out)
        self._plans: dict[tuple[int, int], PatchPlan] = {}

    def fix_pictures(self, sizes: Iterable[tuple[int, int]]) -> None:
        """
        Plan pictures of these sizes once for all, where the weights are.

        :param sizes: height and width of each [pixels]
        """
        like = self.patch_embed.weight
        grids = {self.config.grid(*size) for size in sizes}
        self._plans = {grid: patch_plan(self.config, *grid, like) for grid in grids}

    def forward(self, images: Tensor) -> Tensor:
        """
        Return the tokens of each picture, row by row.

        :param images: ``(N, 3, height, width)``, normalised
        :returns: ``(N, tokens, out)``
        :raises RuntimeError: if ``fix_pictures`` was not told of their size
        """
        config = self.config
        grid = config.grid(int(images.shape[2]), int(images.shape[3]))
        if grid not in self._plans:
            raise RuntimeError(f'fix_pictures() must be called with pictures of {grid} tokens')
        plan, x = self._plans[grid], self._patches(images, *grid)
        for index, block in enumerate(cast('Iterable[QwenVisionBlock]', self.blocks)):
            x = block(x, plan.angles, None if index in config.full_layers else plan.apart)
        found: Tensor = self.merger(x)
        return found

    def _patches(self, images: Tensor, rows: int, columns: int) -> Tensor:
        """Return the embedded patches ``(N, T, hidden)``; every frame is the same picture."""
        n, merge, patch = images.shape[0], self.config.merge, self.config.patch
        grid = images.view(n, 3, rows, merge, patch, columns, merge, patch)
        pixels = grid.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(n, -1, 3 * patch * patch)
        kernel = self.patch_embed.weight.sum(dim=2).flatten(1)
        return functional.linear(pixels, kernel)
