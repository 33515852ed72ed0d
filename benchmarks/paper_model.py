# SPDX-License-Identifier: Apache-2.0
"""A π0.5 of the published size with the paper's requests, for benchmarks: random weights."""

import torch
from torch import Tensor, nn

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.adapter import write_sample
from xinfer_ros.models.aloha import aloha_contract, aloha_statistics
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05, Pi05Config, published_config
from xinfer_ros.models.pi05_flow import Pi05Flow
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedVla
from xinfer_ros.models.tokenizer import ByteTokenizer

CAMERAS, HEIGHT, WIDTH, PATCH, MERGE = 3, 196, 308, 14, 2
PREFIX, HORIZON, ROW_WIDTH = 395, 16, 32
PROMPT = PREFIX - CAMERAS * (HEIGHT // PATCH // MERGE) * (WIDTH // PATCH // MERGE)


def paper_config(tiny: bool) -> Pi05Config:
    """Return the sizes: published widths, or small ones, with the paper's pictures."""
    published = published_config()
    vision, decoder = {'hidden': 1152, 'layers': 27, 'mlp': 4304, 'heads': 16}, published.language
    expert = published.expert
    if tiny:
        vision = {'hidden': 32, 'layers': 1, 'mlp': 64, 'heads': 2}
        decoder = expert = GemmaConfig(
            hidden=32, layers=2, mlp=64, heads=2, kv_heads=1, head_dim=16
        )
    return Pi05Config(
        vision=VisionConfig(height=HEIGHT, width=WIDTH, patch=PATCH, **vision),
        language=decoder,
        expert=expert,
        vocabulary=300 if tiny else published.vocabulary,
        horizon=HORIZON,
        action_width=ROW_WIDTH,
    )


class MergedPi05(Pi05):
    """A π0.5 whose projector makes one token of a block of 2x2 patches, as the paper has it."""

    def __init__(self, config: Pi05Config) -> None:
        super().__init__(config)
        self.projector = nn.Linear(MERGE**2 * config.vision.hidden, config.language.hidden)

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, language width)``."""
        size, tokens = self.config.vision, self.vision(images)
        down, across = size.height // PATCH // MERGE, size.width // PATCH // MERGE
        grid = tokens.view(-1, down, MERGE, across, MERGE, size.hidden).transpose(2, 3)
        features: Tensor = self.projector(grid.reshape(tokens.shape[0], down * across, -1))
        return features


def paper_contract() -> ModelContract:
    """Return the contract: two arms of seven joints, three pictures of 196x308."""
    robot = aloha_contract('paper', 100)
    return ModelContract(
        name='paper',
        cameras=tuple(
            CameraSpec(name=camera.name, height=HEIGHT, width=WIDTH) for camera in robot.cameras
        ),
        joint_names=robot.joint_names,
        horizon=HORIZON,
        max_commitment_steps=HORIZON // 2,
        max_instruction_bytes=PROMPT,
    )


def served(model: Pi05) -> StagedVla:
    """Return the model over slots, with room for exactly the paper's prefix."""
    limits = aloha_statistics()
    prompt = StatePrompt(
        statistics=limits, tokenizer=ByteTokenizer(), tokens=PROMPT, model_name='paper'
    )
    processor = Pi05Processor(state_prompt=prompt, action_space=ActionSpace(statistics=limits))
    options = ServingOptions(processor=processor, prompt_rooms=(PROMPT,), capture=True)
    return StagedVla(paper_contract(), Pi05Flow(model), options)


def filled(contract: ModelContract, count: int) -> SlotArrays:
    """Return slots with a request each, tied to a leftover."""
    memory = memoryview(bytearray(slot_memory_bytes(contract, count)))
    slots = slot_arrays(contract, count, memory)
    for slot in range(count):
        write_sample(slots, slot, 'transfer the cube to the other arm')
        slots.leftover_steps[slot], slots.commitment_steps[slot] = HORIZON - 6, 6
        slots.seed[slot] = slot
    return slots
