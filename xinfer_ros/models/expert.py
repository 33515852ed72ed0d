# SPDX-License-Identifier: Apache-2.0
"""The action expert of π0.5: a Gemma decoder with adaptive norms that attends to the prefix."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.gemma import (
    Attention,
    GatedMlp,
    GemmaConfig,
    joint_turn,
    key_bias,
    rope_angles,
)
from xinfer_ros.models.rms import EPSILON, normalise_rms
from xinfer_ros.models.turn import sum_of_products

# Scale (1 + what the layer gives), shift and gate of one norm, float32, to broadcast over rows.
Modulation = tuple[Tensor, Tensor, Tensor]


class AdaptiveNorm(nn.Module):
    """Root mean square norm whose scale, shift and gate come from the flow time (adaRMS)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)

    def modulations(self, condition: Tensor) -> Tensor:
        """Return scale, shift and gate ``(N, 3, hidden)`` for flow times ``(N, hidden)``."""
        found = torch.unflatten(self.dense(condition).float(), -1, (3, -1))
        found[:, 0] += 1.0
        return found


def gated_sum(x: Tensor, modulation: Modulation, branch: Tensor) -> Tensor:
    """Return ``x`` plus the gated branch; both rows of any type, the sum in float32."""
    return torch.addcmul(x, modulation[2], branch)


def mixed_modulations(frozen: Tensor, clean: Tensor, noisy: Tensor) -> tuple[Modulation, ...]:
    """
    Return modulations row by row: ``clean`` for frozen rows, ``noisy`` for the others.

    :param frozen: ``(B, H)`` bool
    :param clean: ``(norms, 3, hidden)``, see ``ActionExpert.modulations``
    :param noisy: alike
    :returns: for each norm, three arrays ``(B * H, hidden)``
    """
    choice = frozen.flatten()[:, None]
    return split_modulations(torch.where(choice, clean[:, :, None], noisy[:, :, None]))


def split_modulations(modulations: Tensor) -> tuple[Modulation, ...]:
    """Return the modulation of each norm, for ``(norms, 3, ...)``."""
    parts = modulations.flatten(0, 1).unbind()
    return tuple(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


class ExpertLayer(nn.Module):
    """One layer with gated residuals."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.input_layernorm = AdaptiveNorm(config.hidden)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = AdaptiveNorm(config.hidden)
        self.mlp = GatedMlp(config)


class Prefix:
    """
    The prefix's keys and values with room behind them for the rows of the chunk.

    Every Euler step overwrites the same room, so nothing is copied but the rows themselves.

    :param cache: ``(B, layers, 2, T + H, kv_width)``, as Prefill leaves it, with room for the
        chunk behind it, which is overwritten; or without, ``(B, layers, 2, T, kv_width)``, then
        copied
    :param present: ``(B, T)`` bool
    :param horizon: rows of the chunk, ``H``
    :param config: sizes of the expert
    """

    def __init__(self, cache: Tensor, present: Tensor, horizon: int, config: GemmaConfig) -> None:
        tokens = present.shape[1]
        if cache.shape[3] == tokens:
            cache = functional.pad(cache, (0, 0, 0, horizon))
        store = torch.unflatten(cache, -1, (-1, config.head_dim)).permute(1, 2, 0, 4, 3, 5)
        # Views are made once here: on a CPU they cost as much as the arithmetic of a small model.
        self._whole = tuple(layer.unbind() for layer in store.unbind())
        self._room = cache[:, :, :, tokens:].transpose(2, 3).unbind(1)
        rows = present.new_ones((present.shape[0], horizon))
        self.dtype, self.rows = cache.dtype, horizon
        self.bias = key_bias(torch.cat((present, rows), dim=1), cache.dtype)
        first = present.long().sum(1, keepdim=True)
        places = first + torch.arange(horizon, device=first.device)
        self.turn = joint_turn(rope_angles(places, config.head_dim), config)
        self.small = self.turn.cosine.new_full((), EPSILON)

    def extended(self, layer: int, own: Tensor) -> Sequence[Tensor]:
        """
        Return keys and values ``(B, kv_heads, T + H, head_dim)`` of prefix and chunk.

        :param own: ``(B, H, 2, kv_width)``, keys and values of the rows
        """
        self._room[layer].copy_(own)
        return self._whole[layer]


class GradientPrefix(Prefix):
    """A prefix that copies at every layer instead of writing in place, as gradients need it."""

    def extended(self, layer: int, own: Tensor) -> Sequence[Tensor]:
        """Return keys and values ``(B, kv_heads, T + H, head_dim)`` of prefix and chunk."""
        whole = self._whole[layer]
        width = whole[0].shape[-1]
        rows = torch.unflatten(own, -1, (-1, width)).transpose(
            1, 3
        )  # (B, kv_heads, 2, H, head_dim)
        return tuple(
            torch.cat((seen[:, :, : -self.rows], new), dim=2)
            for seen, new in zip(whole, rows.unbind(2), strict=True)
        )


class ActionExpert(nn.Module):
    """
    The stack of expert layers.

    :param config: sizes; heads and layers must be those of the language model
    """

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(ExpertLayer(config) for _ in range(config.layers))
        self.norm = AdaptiveNorm(config.hidden)

    def modulations(self, condition: Tensor) -> Tensor:
        """
        Return what every norm needs for each flow time.

        :param condition: ``(N, hidden)``, one row a flow time
        :returns: ``(N, norms, 3, hidden)`` float32, norms in the order in which ``forward`` uses
            them; scale, shift and gate of each
        """
        norms = []
        for layer in cast('Iterable[ExpertLayer]', self.layers):
            norms.append(layer.input_layernorm.modulations(condition))
            norms.append(layer.post_attention_layernorm.modulations(condition))
        norms.append(self.norm.modulations(condition))
        return torch.stack(norms, dim=1)

    def forward(self, x: Tensor, modulations: Sequence[Modulation], prefix: Prefix) -> Tensor:
        """
        Return the rows after all layers and the final norm.

        Between the layers they are float32, so that no sum needs a conversion of its own.

        :param x: ``(B * H, hidden)`` float32; the rows of a request see each other and the prefix
        :param modulations: two a layer and the final one
        :returns: ``(B * H, hidden)`` float32
        """
        for index, layer in enumerate(cast('Iterable[ExpertLayer]', self.layers)):
            before, after = modulations[2 * index : 2 * index + 2]
            x = gated_sum(x, before, self._attended(index, layer, x, before, prefix))
            normed = self._normed(x, after, prefix, prefix.dtype)
            x = gated_sum(x, after, layer.mlp(normed))
        return self._normed(x, modulations[-1], prefix, torch.float32)

    def _attended(
        self, index: int, layer: ExpertLayer, x: Tensor, modulation: Modulation, prefix: Prefix
    ) -> Tensor:
        """Return what the rows gather from prefix and chunk, ``(B * H, hidden)``."""
        attention, width = layer.self_attn, layer.self_attn.query_width
        turned = prefix.turn(attention.joined(self._normed(x, modulation, prefix, prefix.dtype)))
        own = turned[..., width:].view(-1, prefix.rows, 2, self.config.kv_width)
        keys, values = prefix.extended(index, own)
        return attention.attend(turned[..., :width], prefix.rows, keys, values, prefix.bias)

    def _normed(
        self, x: Tensor, modulation: Modulation, prefix: Prefix, dtype: torch.dtype
    ) -> Tensor:
        """Return the rows' norm, scaled and shifted."""
        scale, shift, _ = modulation
        normed = normalise_rms(x, self.config.hidden, EPSILON, prefix.small)
        return sum_of_products(shift, normed, scale, dtype)
