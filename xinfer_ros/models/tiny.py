# SPDX-License-Identifier: Apache-2.0
"""A small π0.5 with seeded random weights, for the demo and the tests."""

import numpy as np
import torch
from torch import nn

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.normalise import QuantileStatistics
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedPi05
from xinfer_ros.models.tokenizer import ByteTokenizer, longest_state_prompt_bytes

CAMERA_NAMES = ('top', 'left_wrist', 'right_wrist')
# Joint limits of one ViperX 300 S arm [rad], from its published URDF; the gripper is 0 to 1.
ARM_LIMITS = (
    ('waist', -3.14158, 3.14158),
    ('shoulder', -1.85005, 1.25664),
    ('elbow', -1.76278, 1.60570),
    ('forearm_roll', -3.14158, 3.14158),
    ('wrist_angle', -1.86750, 2.23402),
    ('wrist_rotate', -3.14158, 3.14158),
    ('gripper', 0.0, 1.0),
)
_SIDES = ('left', 'right')
_PROMPT_TOKENS = 192
_HORIZON = 16
# Untrained weights do not remove the noise; a little of it keeps rows close to each other.
_NOISE_SCALE = 0.05


def tiny_config() -> Pi05Config:
    """Return the sizes: about 15 ms of one core for all three stages."""
    return Pi05Config(
        vision=VisionConfig(
            height=224, width=320, patch=32, hidden=64, layers=2, mlp=128, heads=4
        ),
        language=GemmaConfig(hidden=64, layers=2, mlp=128, heads=2, kv_heads=1, head_dim=16),
        expert=GemmaConfig(hidden=64, layers=2, mlp=128, heads=2, kv_heads=1, head_dim=16),
        vocabulary=ByteTokenizer.vocabulary,
        horizon=_HORIZON,
        action_width=16,
    )


def tiny_contract() -> ModelContract:
    """Return the contract: two ALOHA arms, three cameras, instructions that always fit."""
    joints = tuple(f'{side}_{joint}' for side in _SIDES for joint, _, _ in ARM_LIMITS)
    vision = tiny_config().vision
    return ModelContract(
        name='tiny',
        cameras=tuple(
            CameraSpec(name=name, height=vision.height, width=vision.width)
            for name in CAMERA_NAMES
        ),
        joint_names=joints,
        horizon=_HORIZON,
        max_commitment_steps=_HORIZON // 2,
        max_instruction_bytes=_PROMPT_TOKENS - 1 - longest_state_prompt_bytes(len(joints)),
    )


def tiny_statistics() -> QuantileStatistics:
    """Return the joint limits as quantiles, so that no answer leaves them."""
    limits = np.array([row[1:] for row in ARM_LIMITS] * len(_SIDES), np.float32)
    return QuantileStatistics(q01=limits[:, 0].copy(), q99=limits[:, 1].copy())


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
                statistics=tiny_statistics(),
                tokenizer=ByteTokenizer(),
                prompt_tokens=_PROMPT_TOKENS,
                noise_scale=_NOISE_SCALE,
                clip_actions=True,
                capture=True,
            ),
        )
