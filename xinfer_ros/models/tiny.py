# SPDX-License-Identifier: Apache-2.0
"""A small π0.5 with seeded random weights, for the demo and the tests."""

import torch
from torch import nn

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.aloha import (
    ARM_LIMITS,
    CAMERA_HEIGHT,
    CAMERA_WIDTH,
    HORIZON,
    aloha_contract,
    aloha_statistics,
)
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedPi05
from xinfer_ros.models.tokenizer import ByteTokenizer, longest_state_prompt_bytes

_PROMPT_TOKENS = 192
# Untrained weights do not remove the noise; a little of it keeps rows close to each other.
_NOISE_SCALE = 0.05


def tiny_config() -> Pi05Config:
    """Return the sizes: about 15 ms of one core for all three stages."""
    return Pi05Config(
        vision=VisionConfig(
            height=CAMERA_HEIGHT,
            width=CAMERA_WIDTH,
            patch=32,
            hidden=64,
            layers=2,
            mlp=128,
            heads=4,
        ),
        language=GemmaConfig(hidden=64, layers=2, mlp=128, heads=2, kv_heads=1, head_dim=16),
        expert=GemmaConfig(hidden=64, layers=2, mlp=128, heads=2, kv_heads=1, head_dim=16),
        vocabulary=ByteTokenizer.vocabulary,
        horizon=HORIZON,
        action_width=16,
    )


def tiny_contract() -> ModelContract:
    """Return the contract: ALOHA, with instructions that always fit."""
    longest_state = longest_state_prompt_bytes(2 * len(ARM_LIMITS))
    return aloha_contract('tiny', _PROMPT_TOKENS - 1 - longest_state)


def seeded_pi05(config: Pi05Config, seed: int) -> Pi05:
    """
    Return a model whose weights depend on ``config`` and ``seed`` alone.

    :param seed: of a generator of its own; the global one is neither read nor moved
    """
    with torch.device('meta'):  # no initialisation, hence no draw from the global generator
        model = Pi05(config)
    model.to_empty(device='cpu')
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            _fill(module, generator)
    model.requires_grad_(False).eval()
    model.fix_times()
    return model


def _fill(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the module's own weights so that signals keep their size from layer to layer."""
    for name, weight in module.named_parameters(recurse=False):
        if weight.ndim > 1:
            fan_in = 1 if isinstance(module, nn.Embedding) else weight[0].numel()
            weight.normal_(0.0, fan_in**-0.5, generator=generator)
        else:
            weight.normal_(0.0, 0.1, generator=generator)
            if isinstance(module, nn.LayerNorm) and name == 'weight':
                weight.add_(1.0)


class TinyVla(StagedPi05):
    """
    The tiny model: random, deterministic, inside the joint limits, and dependent on its inputs.

    :param seed: seed of the weights
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(
            tiny_contract(),
            seeded_pi05(tiny_config(), seed),
            ServingOptions(
                statistics=aloha_statistics(),
                tokenizer=ByteTokenizer(),
                prompt_tokens=_PROMPT_TOKENS,
                noise_scale=_NOISE_SCALE,
                clip_actions=True,
                capture=True,
            ),
        )
