# SPDX-License-Identifier: Apache-2.0
"""
The language model of π0.5: a Gemma decoder that only fills a key-value cache.

Other families use the same blocks with other norms, activations and biases.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.joined import Joined
from xinfer_ros.models.rms import EPSILON, RmsNorm
from xinfer_ros.models.turn import Turn, turn_of

_ROPE_BASE = 10000.0
_MASK_ALIGNMENT = 16

Angles = tuple[Tensor, Tensor]


class Activation(Enum):
    """What a gated MLP applies to its gate."""

    GELU_TANH = 'gelu_tanh'
    SILU = 'silu'


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaConfig:
    """
    Sizes of a decoder: the language model or the action expert; as in Gemma where not said.

    :param hidden: width of a token
    :param layers: number of layers
    :param mlp: width of the hidden layer of the MLP
    :param heads: number of query heads
    :param kv_heads: number of key and value heads, divides ``heads``
    :param head_dim: width of a head, even
    :param activation: of the MLP's gate
    :param norm_offset: what is added to the weight of a norm
    :param epsilon: what is added to the mean square before its root is taken
    :param qkv_bias: whether queries, keys and values have a bias
    :raises ValueError: if the heads do not fit together
    """

    hidden: int
    layers: int
    mlp: int
    heads: int
    kv_heads: int
    head_dim: int
    activation: Activation = Activation.GELU_TANH
    norm_offset: float = 1.0
    epsilon: float = EPSILON
    qkv_bias: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        if self.heads % self.kv_heads or self.head_dim % 2:
            raise ValueError(
                f'{self.heads} query heads, {self.kv_heads} key heads of width {self.head_dim}: '
                'the key heads must divide the query heads and the width must be even'
            )

    @property
    def kv_width(self) -> int:
        """Return the width of all keys of one token."""
        return self.kv_heads * self.head_dim


def rope_angles(positions: Tensor, head_dim: int) -> Angles:
    """
    Return cosine and signed sine of the rotary angles.

    :param positions: ``(B, T)`` integers
    :returns: two arrays ``(B, 1, T, head_dim)`` float32, to broadcast over heads; the sine of the
        first half is negated, as ``rotate`` needs it
    """
    exponent = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32)
    frequencies = _ROPE_BASE ** (-exponent / head_dim)
    angles = positions[:, None, :, None].float() * frequencies
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat((cosine, cosine), dim=-1), torch.cat((-sine, sine), dim=-1)


def rotate(x: Tensor, angles: Angles) -> Tensor:
    """Return heads ``(B, heads, T, head_dim)`` turned by ``angles``; halves are the pairs."""
    cosine, signed_sine = angles
    swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * cosine, swapped, signed_sine).to(x.dtype)


def joint_turn(angles: Angles, config: GemmaConfig) -> Turn:
    """Return the turn of what ``Attention.joined`` gives, for angles from ``rope_angles``."""
    return turn_of(
        *angles, heads=config.heads + config.kv_heads, still=config.kv_heads, width=config.head_dim
    )


def key_bias(present: Tensor, dtype: torch.dtype) -> Tensor:
    """
    Return what to add to the scores of keys: 0 where present, minus infinity elsewhere.

    :param present: ``(B, T)`` bool
    :returns: ``(B, 1, 1, T)``, the same for all heads and queries
    """
    batch, tokens = present.shape
    # CUDA's attention copies a mask at every call whose rows are not aligned in memory.
    aligned = -(-tokens // _MASK_ALIGNMENT) * _MASK_ALIGNMENT
    bias = present.new_zeros((batch, 1, 1, aligned), dtype=dtype)[..., :tokens]
    return bias.masked_fill_(~present[:, None, None], -math.inf)


def query_bias(visible: Tensor, config: GemmaConfig, dtype: torch.dtype) -> Tensor:
    """
    Return what to add to the scores where each query sees keys of its own.

    :param visible: ``(B, T, N)`` bool, at least one True in every row
    :param config: gives the number of heads that share keys
    :returns: ``(B, 1, T x heads of a group, N)``, 0 where visible, minus infinity elsewhere
    """
    bias = torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, -math.inf)
    return bias.repeat_interleave(config.heads // config.kv_heads, 1)[:, None]


def norm_of(config: GemmaConfig) -> RmsNorm:
    """Return a norm of a decoder with these sizes."""
    return RmsNorm(config.hidden, config.norm_offset, config.epsilon)


class Attention(Joined):
    """Projections of grouped-query attention, and the attention itself over given keys."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.config = config
        self.query_width = config.heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden, self.query_width, bias=config.qkv_bias)
        self.k_proj = nn.Linear(config.hidden, config.kv_width, bias=config.qkv_bias)
        self.v_proj = nn.Linear(config.hidden, config.kv_width, bias=config.qkv_bias)
        self.o_proj = nn.Linear(self.query_width, config.hidden, bias=False)

    def _together(self) -> Sequence[nn.Linear]:
        return self.q_proj, self.k_proj, self.v_proj

    def _split(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, -1, (-1, self.config.head_dim)).transpose(1, 2)

    def keys_values(self, x: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
        """Return turned keys and values, each ``(B, kv_heads, T, head_dim)``."""
        return rotate(self._split(self.k_proj(x)), angles), self._split(self.v_proj(x))

    def forward(
        self, x: Tensor, angles: Angles, keys: Tensor, values: Tensor, bias: Tensor
    ) -> Tensor:
        """
        Let every token of ``x`` attend to all keys that are present.

        :param x: ``(B, T, hidden)``
        :param keys: ``(B, kv_heads, N, head_dim)``; values alike
        :param bias: ``(B, 1, 1, N)`` from ``key_bias``, or from ``query_bias``
        :returns: ``(B, T, hidden)``
        """
        queries = rotate(self._split(self.q_proj(x)), angles).transpose(1, 2).flatten(2)
        return self.attend(queries.flatten(0, 1), x.shape[1], keys, values, bias).view_as(x)

    def attend(
        self, queries: Tensor, tokens: int, keys: Tensor, values: Tensor, bias: Tensor
    ) -> Tensor:
        """
        Return what tokens gather, ``(B * T, hidden)``.

        :param queries: ``(B * T, width of all heads)``, turned
        :param tokens: of a request, ``T``
        :param keys: ``(B, kv_heads, N, head_dim)``; values alike
        :param bias: as in ``forward``
        """
        # The heads of a group queue up as more queries of one head: no copy of the keys for each
        # head. Those of a token stay together, so with one group nothing needs to be sorted.
        groups, width = self.config.kv_heads, self.config.head_dim
        each = self.config.heads // groups
        if groups == 1:
            grouped = queries.reshape(-1, 1, tokens * each, width)
        else:
            apart = queries.view(-1, tokens, groups, each, width)
            grouped = apart.transpose(1, 2).flatten(2, 3)
        mixed = functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=bias)
        if groups > 1:
            mixed = mixed.view(-1, groups, tokens, each, width).transpose(1, 2)
        out: Tensor = self.o_proj(mixed.reshape(-1, self.query_width))
        return out


class GatedMlp(Joined):
    """MLP with a gate: GeGLU with the tanh form of GELU, or SwiGLU."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self._width, self._silu = config.mlp, config.activation is Activation.SILU
        self.gate_proj = nn.Linear(config.hidden, config.mlp, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.mlp, bias=False)
        self.down_proj = nn.Linear(config.mlp, config.hidden, bias=False)

    def _together(self) -> Sequence[nn.Linear]:
        return self.gate_proj, self.up_proj

    def forward(self, x: Tensor) -> Tensor:
        """Return an array like ``x``."""
        both = self.joined(x)
        gate, up = both[..., : self._width], both[..., self._width :]
        gate = functional.silu(gate) if self._silu else functional.gelu(gate, approximate='tanh')
        out: Tensor = self.down_proj(gate * up)
        return out


class DecoderLayer(nn.Module):
    """One pre-norm layer of the language model."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.input_layernorm = norm_of(config)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = norm_of(config)
        self.mlp = GatedMlp(config)


class LanguageModel(nn.Module):
    """
    Gemma, used for its keys and values only; the final norm is loaded but never applied.

    :param config: sizes
    :param vocabulary: number of token ids
    """

    def __init__(self, config: GemmaConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        # not nn.Embedding(...): its random start loads torch's compiler, which takes seconds
        self.embed_tokens = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            torch.empty(vocabulary, config.hidden), freeze=False
        )
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = norm_of(config)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return ``(B, T, hidden)`` for token ids ``(B, T)``, scaled by the root of the width."""
        out: Tensor = self.embed_tokens(tokens) * self.config.hidden**0.5
        return out

    def fill_cache(self, x: Tensor, present: Tensor) -> Tensor:
        """
        Return the keys and values of every layer; all present tokens see each other.

        :param x: ``(B, T, hidden)``
        :param present: ``(B, T)`` bool, False for padding and missing cameras
        :returns: ``(B, layers, 2, T, kv_width)``, keys first
        """
        angles = rope_angles(present.long().cumsum(1) - 1, self.config.head_dim)
        return self.turned_cache(x, angles, key_bias(present, x.dtype))

    def turned_cache(self, x: Tensor, angles: Angles, bias: Tensor) -> Tensor:
        """
        Return the keys and values of every layer for positions and a mask of any kind.

        :param x: ``(B, T, hidden)``
        :param angles: of the positions, to broadcast over heads
        :param bias: from ``key_bias`` or ``query_bias``
        :returns: ``(B, layers, 2, T, kv_width)``, keys first
        """
        batch, tokens, hidden = x.shape
        turn, rows = joint_turn(angles, self.config), x.view(-1, hidden)
        cache = []
        for index, layer in enumerate(cast('Iterable[DecoderLayer]', self.layers)):
            attention, normed = layer.self_attn, layer.input_layernorm(rows)
            turned = turn(attention.joined(normed))
            own = turned[..., attention.query_width :].view(batch, tokens, 2, -1).transpose(1, 2)
            cache.append(own)  # (B, 2, T, kv_width)
            if index + 1 < len(self.layers):  # nothing reads what the last layer would add
                heads = (
                    torch.unflatten(own, -1, (-1, self.config.head_dim)).transpose(2, 3).unbind(1)
                )
                queries = turned[..., : attention.query_width]
                rows = rows + attention.attend(queries, tokens, heads[0], heads[1], bias)
                rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
        return torch.stack(cache, dim=1)
