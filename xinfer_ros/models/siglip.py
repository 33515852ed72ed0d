# SPDX-License-Identifier: Apache-2.0
"""The vision tower of π0.5: a SigLIP encoder and the projector into the language model."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.joined import Joined, Prepared

_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionConfig:
    """
    Sizes of the vision tower. Pictures need not be square.

    :param height: rows of a picture [pixels], a multiple of ``patch``
    :param width: columns of a picture [pixels], a multiple of ``patch``
    :param patch: edge of a patch [pixels]
    :param hidden: width of a token
    :param layers: number of encoder layers
    :param mlp: width of the hidden layer of the MLP
    :param heads: number of attention heads
    :raises ValueError: if the patches do not tile the picture or the heads do not tile the width
    """

    height: int
    width: int
    patch: int
    hidden: int
    layers: int
    mlp: int
    heads: int

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        if self.height % self.patch or self.width % self.patch:
            raise ValueError(
                f'patches of {self.patch} pixels do not tile a picture of '
                f'{self.height}x{self.width}'
            )
        if self.hidden % self.heads:
            raise ValueError(f'{self.heads} heads do not divide a width of {self.hidden}')

    @property
    def num_tokens(self) -> int:
        """Return the number of tokens of one picture."""
        return (self.height // self.patch) * (self.width // self.patch)


class Embeddings(Prepared[Tensor]):
    """Patches to tokens, plus one learned position for each place of the patch grid."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.patch = config.patch
        self.patch_embedding = nn.Conv2d(3, config.hidden, config.patch, stride=config.patch)
        # not nn.Embedding(...): its random start loads torch's compiler, which takes seconds
        self.position_embedding = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            torch.empty(config.num_tokens, config.hidden), freeze=False
        )

    @torch.no_grad()
    def prepare(self) -> None:
        """Lay the kernel out as pictures are in memory."""
        self._made = self._kernel()

    def _kernel(self) -> Tensor:
        return self.patch_embedding.weight.permute(0, 2, 3, 1).flatten(1)

    def forward(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, hidden)`` for ``images`` ``(N, 3, height, width)``."""
        # Patches do not overlap, so the convolution is one matrix product. Channels come last
        # because pictures do so in memory: whole rows of a patch are copied at once.
        n, channels, height, width = images.shape
        edge = self.patch
        grid = images.view(n, channels, height // edge, edge, width // edge, edge)
        patches = grid.permute(0, 2, 4, 3, 5, 1).reshape(n, -1, channels * edge * edge)
        kernel = self._kernel() if self._made is None else self._made
        tokens = functional.linear(patches, kernel, self.patch_embedding.bias)
        return tokens + self.position_embedding.weight


class SelfAttention(Joined):
    """Multi-head attention of every token to every token of the same picture."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.q_proj = nn.Linear(config.hidden, config.hidden)
        self.k_proj = nn.Linear(config.hidden, config.hidden)
        self.v_proj = nn.Linear(config.hidden, config.hidden)
        self.out_proj = nn.Linear(config.hidden, config.hidden)

    def _together(self) -> Sequence[nn.Linear]:
        return self.q_proj, self.k_proj, self.v_proj

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(N, tokens, hidden)``."""
        apart = torch.unflatten(self.joined(x), -1, (3, self.heads, -1))
        queries, keys, values = apart.permute(2, 0, 3, 1, 4).unbind()
        mixed = functional.scaled_dot_product_attention(queries, keys, values)
        out: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out


class Mlp(nn.Module):
    """Two linear layers with the tanh form of GELU between them."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden, config.mlp)
        self.fc2 = nn.Linear(config.mlp, config.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(N, tokens, hidden)``."""
        out: Tensor = self.fc2(functional.gelu(self.fc1(x), approximate='tanh'))
        return out


class EncoderLayer(nn.Module):
    """One pre-norm layer."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(config.hidden, eps=_EPSILON)
        self.self_attn = SelfAttention(config)
        self.layer_norm2 = nn.LayerNorm(config.hidden, eps=_EPSILON)
        self.mlp = Mlp(config)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(N, tokens, hidden)``."""
        x = x + self.self_attn(self.layer_norm1(x))
        out: Tensor = x + self.mlp(self.layer_norm2(x))
        return out


class Encoder(nn.Module):
    """The stack of layers; a module of its own because the published names have that level."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(N, tokens, hidden)``."""
        for layer in self.layers:
            x = layer(x)
        return x


class VisionTower(nn.Module):
    """
    SigLIP: patch embedding, learned positions, encoder, post-norm.

    :param config: sizes
    Source: published π0.5 checkpoints, ``vision_tower.vision_model``.
    """

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.post_layernorm = nn.LayerNorm(config.hidden, eps=_EPSILON)

    def forward(self, images: Tensor) -> Tensor:
        """
        Return the tokens of each picture, before the projector.

        :param images: ``(N, 3, height, width)``, [-1, 1]
        :returns: ``(N, tokens, hidden)``
        """
        tokens: Tensor = self.post_layernorm(self.encoder(self.embeddings(images)))
        return tokens


def to_model_range(images: Tensor, dtype: torch.dtype) -> Tensor:
    """
    Return channels-first pictures in [-1, 1]; in memory the channels stay last.

    :param images: ``(N, height, width, 3)`` uint8 RGB
    :returns: ``(N, 3, height, width)``
    """
    return images.to(dtype).mul_(2.0 / 255.0).sub_(1.0).permute(0, 3, 1, 2)
