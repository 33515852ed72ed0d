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
    key_bias,
    normalise_rms,
    rope_angles,
)

# Scale (1 + what the layer gives), shift and gate of one norm, float32, to broadcast over rows.
Modulation = tuple[Tensor, Tensor, Tensor]


class AdaptiveNorm(nn.Module):
    """Root mean square norm whose scale, shift and gate come from the flow time (adaRMS)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)

    def modulations(self, condition: Tensor) -> list[Modulation]:
        """Return the modulation for each flow time, a row of ``condition`` ``(N, hidden)``."""
        scale, shift, gate = self.dense(condition).float().chunk(3, dim=-1)
        return list(zip(1.0 + scale, shift, gate, strict=True))


def modulated_norm(x: Tensor, modulation: Modulation) -> Tensor:
    """Return the norm of ``x`` ``(B, H, hidden)``, scaled and shifted."""
    scale, shift, _ = modulation
    return torch.addcmul(shift, normalise_rms(x), scale).to(x.dtype)


def gated_sum(x: Tensor, modulation: Modulation, branch: Tensor) -> Tensor:
    """Return ``x`` plus the gated branch."""
    return torch.addcmul(x, modulation[2].to(x.dtype), branch)


def mixed_modulations(
    frozen: Tensor, clean: Sequence[Modulation], noisy: Sequence[Modulation]
) -> tuple[Modulation, ...]:
    """
    Return modulations row by row: ``clean`` for frozen rows, ``noisy`` for the others.

    :param frozen: ``(B, H)`` bool
    """
    choice = frozen[..., None]
    return tuple(
        (
            torch.where(choice, ours[0], theirs[0]),
            torch.where(choice, ours[1], theirs[1]),
            torch.where(choice, ours[2], theirs[2]),
        )
        for ours, theirs in zip(clean, noisy, strict=True)
    )


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
    :param head_dim: width of a head
    """

    def __init__(self, cache: Tensor, present: Tensor, horizon: int, head_dim: int) -> None:
        tokens = present.shape[1]
        if cache.shape[3] == tokens:
            cache = functional.pad(cache, (0, 0, 0, horizon))
        store = cache.view(*cache.shape[:4], -1, head_dim).permute(1, 2, 0, 4, 3, 5)
        # Views are made once here: on a CPU they cost as much as the arithmetic of a small model.
        self._whole = [(keys, values) for keys, values in store]
        self._room = [(keys, values) for keys, values in store[..., tokens:, :]]
        rows = present.new_ones((present.shape[0], horizon))
        self.bias = key_bias(torch.cat((present, rows), dim=1), cache.dtype)
        first = present.long().sum(1, keepdim=True)
        self.angles = rope_angles(first + torch.arange(horizon, device=first.device), head_dim)

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values ``(B, kv_heads, T + H, head_dim)`` of prefix and chunk."""
        self._room[layer][0].copy_(keys)
        self._room[layer][1].copy_(values)
        return self._whole[layer]


class GradientPrefix(Prefix):
    """A prefix that copies at every layer instead of writing in place, as gradients need it."""

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values ``(B, kv_heads, T + H, head_dim)`` of prefix and chunk."""
        whole, rows = self._whole[layer], keys.shape[2]
        return (
            torch.cat((whole[0][:, :, :-rows], keys), dim=2),
            torch.cat((whole[1][:, :, :-rows], values), dim=2),
        )


class ActionExpert(nn.Module):
    """
    The stack of expert layers.

    :param config: sizes; heads and layers must be those of the language model
    """

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ExpertLayer(config) for _ in range(config.layers))
        self.norm = AdaptiveNorm(config.hidden)

    def modulations(self, condition: Tensor) -> tuple[tuple[Modulation, ...], ...]:
        """
        Return what every norm needs for each flow time.

        :param condition: ``(N, hidden)``, one row a flow time
        :returns: for each flow time, the modulations in the order in which ``forward`` uses them
        """
        norms = []
        for layer in cast('Iterable[ExpertLayer]', self.layers):
            norms.append(layer.input_layernorm.modulations(condition))
            norms.append(layer.post_attention_layernorm.modulations(condition))
        norms.append(self.norm.modulations(condition))
        return tuple(zip(*norms, strict=True))

    def forward(self, x: Tensor, modulations: Sequence[Modulation], prefix: Prefix) -> Tensor:
        """
        Return the rows after all layers and the final norm.

        :param x: ``(B, H, hidden)``; all rows see each other and the prefix
        :param modulations: two a layer and the final one
        :returns: ``(B, H, hidden)``
        """
        for index, layer in enumerate(cast('Iterable[ExpertLayer]', self.layers)):
            before, after = modulations[2 * index : 2 * index + 2]
            normed = modulated_norm(x, before)
            own = layer.self_attn.keys_values(normed, prefix.angles)
            keys, values = prefix.extended(index, *own)
            mixed = layer.self_attn(normed, prefix.angles, keys, values, prefix.bias)
            x = gated_sum(x, before, mixed)
            x = gated_sum(x, after, layer.mlp(modulated_norm(x, after)))
        return modulated_norm(x, modulations[-1])
