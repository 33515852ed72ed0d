# SPDX-License-Identifier: Apache-2.0
"""An action expert with plain norms, whose rows see the prefix's cache and mostly each other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.gemma import Angles, Attention, GatedMlp, GemmaConfig, norm_of, query_bias
from xinfer_ros.models.turn import Turn

_MASK_ALIGNMENT = 16


class PlainExpertLayer(nn.Module):
    """
    One pre-norm layer.

    :param config: sizes
    :param prefix_width: width of the prefix's keys if the layer sees nothing else, None if it has
        keys of its own rows too
    """

    def __init__(self, config: GemmaConfig, prefix_width: int | None) -> None:
        super().__init__()
        self.input_layernorm = norm_of(config)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = norm_of(config)
        self.mlp = GatedMlp(config)
        self.crosses = prefix_width is not None
        if prefix_width is not None:  # keys are made of the prefix's keys, not of the rows
            self.self_attn.k_proj = nn.Linear(prefix_width, config.kv_width, bias=False)
            self.self_attn.v_proj = nn.Linear(prefix_width, config.kv_width, bias=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """
    Where rows that see the prefix only are, and which keys they see.

    :param angles: rotary angles of the rows
    :param bias: what is added to the scores, see ``gemma.key_bias``
    """

    angles: Angles
    bias: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKeys:
    """
    What a layer's rows attend to.

    :param keys: ``(B, kv_heads, T, head_dim)`` of the prefix; with room for ``H`` rows behind
        where they see each other
    :param values: alike
    :param room: ``(B, H, 2, kv_width)``, the room for the rows' keys and values, overwritten at
        every Euler step; empty where they see the prefix only
    """

    keys: Tensor
    values: Tensor
    room: Tensor

    def extended(self, own: Tensor) -> tuple[Tensor, Tensor]:
        """
        Return keys and values ``(B, kv_heads, T + H, head_dim)`` of prefix and rows.

        :param own: ``(B, H, 2, kv_width)``, keys and values of the rows
        """
        if not torch.is_grad_enabled():
            self.room.copy_(own)
            return self.keys, self.values
        rows, width = own.shape[1], self.keys.shape[-1]  # gradients need what was there before
        keys, values = torch.unflatten(own, -1, (-1, width)).transpose(1, 3).unbind(2)
        return (
            torch.cat((self.keys[:, :, :-rows], keys), dim=2),
            torch.cat((self.values[:, :, :-rows], values), dim=2),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPrefix:
    """
    What the layers need of the prefix; none of it depends on the flow time.

    :param layers: the keys and values of each
    :param turn: of the rows' queries and keys in layers where they see each other too
    :param bias: what is added to the scores there, see ``row_bias``
    :param cross: for layers whose rows see the prefix only; None where there are none
    """

    layers: tuple[LayerKeys, ...]
    turn: Turn
    bias: Tensor
    cross: Sight | None = None


class PlainExpert(nn.Module):
    """
    The stack of layers.

    :param config: sizes; as many layers and heads as the language model
    :param prefix_width: width of a layer's keys in the language model
    :param self_every: layers 0, n, 2 n, ... see their own rows too; 0 for no layer, 1 for all
    """

    def __init__(self, config: GemmaConfig, prefix_width: int, self_every: int = 1) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(
            PlainExpertLayer(
                config, None if self_every > 0 and index % self_every == 0 else prefix_width
            )
            for index in range(config.layers)
        )
        self.norm = norm_of(config)

    def layer_keys(self, cache: Tensor, tokens: int, horizon: int) -> tuple[LayerKeys, ...]:
        """
        Return the prefix's keys and values as each layer sees them.

        :param cache: ``(B, layers, 2, T + H, kv_width)`` with room for the rows, which is
            overwritten; or without, ``(B, layers, 2, T, kv_width)``, then copied
        :param tokens: of the prefix, ``T``
        :param horizon: rows of the chunk, ``H``
        """
        if cache.shape[3] == tokens:
            cache = functional.pad(cache, (0, 0, 0, horizon))
        layers = cast('Iterable[PlainExpertLayer]', self.layers)
        return tuple(
            self._of_layer(layer, cache[:, index], tokens) for index, layer in enumerate(layers)
        )

    def _of_layer(self, layer: PlainExpertLayer, cache: Tensor, tokens: int) -> LayerKeys:
        keys, values = cache.unbind(1)  # each (B, T + H, kv_width)
        if layer.crosses:
            keys = layer.self_attn.k_proj(keys[:, :tokens])
            values = layer.self_attn.v_proj(values[:, :tokens])
        split = (*keys.shape[:2], -1, self.config.head_dim)
        keys, values = keys.view(split).transpose(1, 2), values.view(split).transpose(1, 2)
        return LayerKeys(keys=keys, values=values, room=cache[:, :, tokens:].transpose(1, 2))

    def forward(self, x: Tensor, prefix: ExpertPrefix) -> Tensor:
        """
        Return the rows after all layers and the final norm.

        :param x: ``(B, H, hidden)``
        :returns: ``(B, H, hidden)``
        """
        for index, layer in enumerate(cast('Iterable[PlainExpertLayer]', self.layers)):
            normed, seen = layer.input_layernorm(x), prefix.layers[index]
            if layer.crosses and prefix.cross is not None:
                angles, bias = prefix.cross.angles, prefix.cross.bias
                x = x + layer.self_attn(normed, angles, seen.keys, seen.values, bias)
            else:
                x = x + self._mixed(layer.self_attn, normed, seen, prefix)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        found: Tensor = self.norm(x)
        return found

    def _mixed(
        self, attention: Attention, x: Tensor, seen: LayerKeys, prefix: ExpertPrefix
    ) -> Tensor:
        """Return what rows gather from prefix and rows, like ``x``."""
        rows, width = x.shape[1], attention.query_width
        turned = prefix.turn(attention.joined(x.flatten(0, 1)))
        own = turned[:, width:].view(-1, rows, 2, self.config.kv_width)
        keys, values = seen.extended(own)
        return attention.attend(turned[:, :width], rows, keys, values, prefix.bias).view_as(x)


def row_bias(
    present: Tensor, horizon: int, config: GemmaConfig, dtype: torch.dtype, *, causal: bool
) -> Tensor:
    """
    Return what to add to the scores of rows that see the prefix and each other.

    :param present: ``(B, T)`` bool
    :param horizon: rows of the chunk, ``H``
    :param causal: rows see earlier rows only, instead of all
    """
    rows = torch.arange(horizon, device=present.device)
    earlier = rows <= rows[:, None] if causal else torch.ones_like(rows <= rows[:, None])
    seen = present[:, None].expand(-1, horizon, -1)
    visible = torch.cat((seen, earlier.expand(present.shape[0], -1, -1)), dim=2)
    return aligned_bias(visible, config, dtype)


def aligned_bias(visible: Tensor, config: GemmaConfig, dtype: torch.dtype) -> Tensor:
    """
    Return the same as ``gemma.query_bias``, with rows that are aligned in memory.

    CUDA's attention copies others at every call.
    """
    keys = int(visible.shape[2])
    padded = functional.pad(visible, (0, -keys % _MASK_ALIGNMENT))
    return query_bias(padded, config, dtype)[..., :keys]
