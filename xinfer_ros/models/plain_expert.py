# SPDX-License-Identifier: Apache-2.0
"""An action expert with plain norms, whose rows see the prefix's cache and mostly each other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from xinfer_ros.models.gemma import Angles, Attention, GatedMlp, GemmaConfig, norm_of, query_bias


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
    Where the rows are, and which keys they see.

    :param angles: rotary angles of the rows
    :param bias: what is added to the scores, see ``gemma.key_bias`` and ``gemma.query_bias``
    """

    angles: Angles
    bias: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPrefix:
    """
    What the layers need of the prefix; none of it depends on the flow time.

    :param keys_values: of the prefix, for each layer, each ``(B, kv_heads, T, head_dim)``
    :param rows: for layers whose rows see the prefix and then each other
    :param cross: for layers whose rows see the prefix only; None where there are none
    """

    keys_values: tuple[tuple[Tensor, Tensor], ...]
    rows: Sight
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

    def keys_values(self, cache: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        """
        Return the prefix's keys and values as each layer sees them.

        :param cache: ``(B, layers, 2, T, kv_width)``
        """
        layers = cast('Iterable[PlainExpertLayer]', self.layers)
        return tuple(self._of_layer(layer, cache[:, index]) for index, layer in enumerate(layers))

    def _of_layer(self, layer: PlainExpertLayer, cache: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = cache.unbind(1)  # each (B, T, kv_width)
        if layer.crosses:
            keys, values = layer.self_attn.k_proj(keys), layer.self_attn.v_proj(values)
        split = (*keys.shape[:2], -1, self.config.head_dim)
        return keys.view(split).transpose(1, 2), values.view(split).transpose(1, 2)

    def forward(self, x: Tensor, prefix: ExpertPrefix) -> Tensor:
        """
        Return the rows after all layers and the final norm.

        :param x: ``(B, H, hidden)``
        :returns: ``(B, H, hidden)``
        """
        for index, layer in enumerate(cast('Iterable[PlainExpertLayer]', self.layers)):
            normed = layer.input_layernorm(x)
            keys, values = prefix.keys_values[index]
            sight = prefix.cross if layer.crosses and prefix.cross is not None else prefix.rows
            if not layer.crosses:
                own = layer.self_attn.keys_values(normed, sight.angles)
                keys, values = torch.cat((keys, own[0]), dim=2), torch.cat((values, own[1]), dim=2)
            x = x + layer.self_attn(normed, sight.angles, keys, values, sight.bias)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        found: Tensor = self.norm(x)
        return found


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
    visible = torch.cat((seen, earlier.expand(len(present), -1, -1)), dim=2)
    return query_bias(visible, config, dtype)
