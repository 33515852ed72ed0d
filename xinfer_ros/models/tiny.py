# SPDX-License-Identifier: Apache-2.0
"""A small π0.5 with seeded random weights, for the demo and the tests."""

import torch
from torch import nn

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.aloha import (
    ARM_LIMITS,
    CAMERA_HEIGHT,
    CAMERA_WIDTH,
    HORIZON,
    aloha_contract,
    aloha_statistics,
)
from xinfer_ros.models.devices import chosen_device, chosen_dtype
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.joined import prepare
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.pi05_flow import Pi05Flow
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.rtc import resolved_rtc
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedVla
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


def tiny_processor() -> Pi05Processor:
    """Return the processor: joint limits as statistics, and no answer outside of them."""
    limits = aloha_statistics()
    return Pi05Processor(
        state_prompt=StatePrompt(
            statistics=limits,
            tokenizer=ByteTokenizer(),
            tokens=_PROMPT_TOKENS,
            model_name='tiny',
        ),
        action_space=ActionSpace(statistics=limits, limits=(limits.q01, limits.q99)),
    )


def seeded_pi05(config: Pi05Config, seed: int) -> Pi05:
    """
    Return a model whose weights depend on ``config`` and ``seed`` alone.

    :param seed: of a generator of its own; the global one is neither read nor moved
    """
    with torch.device('meta'):  # no initialisation, hence no draw from the global generator
        model = Pi05(config)
    return drawn(model, torch.Generator().manual_seed(seed))


def drawn(model: Pi05, generator: torch.Generator) -> Pi05:
    """
    Give a model random weights on the generator's device, and fix its times.

    :param model: made on the meta device, of any type of weights
    :param generator: the only one that is read or moved
    """
    model.to_empty(device=generator.device)
    with torch.no_grad():
        for module in model.modules():
            _fill(module, generator)
    model.requires_grad_(False).eval()
    model.fix_times()
    return model


def tiny_pi05(options: ModelOptions) -> Pi05:
    """Return the tiny model where it is wanted; what depends on the times is not narrowed."""
    device, model = chosen_device(options.device), seeded_pi05(tiny_config(), options.seed)
    model.to(device)
    model.fix_times()
    model.to(chosen_dtype(options.dtype, device))
    prepare(model)
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


class TinyVla(StagedVla):
    """
    The tiny model: random, deterministic, inside the joint limits, and dependent on its inputs.

    :param options: seed of the weights, where they lie, and how chunks are tied
    """

    def __init__(self, options: ModelOptions | None = None) -> None:
        chosen = options if options is not None else ModelOptions()
        super().__init__(
            tiny_contract(),
            Pi05Flow(tiny_pi05(chosen)),
            ServingOptions(
                processor=tiny_processor(),
                rtc=resolved_rtc(chosen.rtc, trained_steps=0, name='tiny'),
                noise_scale=_NOISE_SCALE,
                capture=True,
                prompt_rooms=(_PROMPT_TOKENS,),
            ),
        )
