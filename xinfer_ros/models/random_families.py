# SPDX-License-Identifier: Apache-2.0
"""SmolVLA and Wall-OSS with random weights: tiny for tests, in published sizes for load tests."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import nn

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.aloha import (
    CAMERA_HEIGHT,
    CAMERA_NAMES,
    CAMERA_WIDTH,
    HORIZON,
    aloha_contract,
    aloha_statistics,
)
from xinfer_ros.models.devices import chosen_device, chosen_dtype
from xinfer_ros.models.family_processor import (
    MarkedTokenizer,
    SmolVlaProcessor,
    WallProcessor,
    wall_prompt,
)
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.programs import prompt_rooms
from xinfer_ros.models.qwen_vision import QwenVisionConfig
from xinfer_ros.models.rms import RmsNorm
from xinfer_ros.models.rtc import resolved_rtc
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.smolvla import SmolVla, SmolVlaConfig, published_smolvla, smol_decoder
from xinfer_ros.models.smolvla_vision import SmolVisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedVla
from xinfer_ros.models.tokenizer import ByteTokenizer
from xinfer_ros.models.wall import Wall
from xinfer_ros.models.wall_config import (
    Size,
    WallConfig,
    paper_vla_2b,
    published_wall_oss_05,
    qwen_decoder,
)

ModelT = TypeVar('ModelT', SmolVla, Wall)

# Untrained weights do not remove the noise; a little of it keeps rows close to each other.
NOISE_SCALE = 0.05
_JOINTS = len(aloha_statistics().q01)
_VIEWS = tuple(f'{name.replace("_", " ")} view' for name in CAMERA_NAMES)
_TINY_HEADS = {'layers': 4, 'heads': 4, 'kv_heads': 2, 'head_dim': 16}
_ROBOT: dict[str, Any] = {'horizon': HORIZON, 'joints': _JOINTS}
_TINY_SMOLVLA_PROMPT, _SMOLVLA_PROMPT = 96, 48
_TINY_WALL_PREFIX, _PAPER_WALL_PREFIX, _PAPER_VLA_2B_PREFIX = 512, 445, 446
# Those of the wrists are narrower, as the paper's are.
_TINY_WALL_PICTURES = (
    (CAMERA_HEIGHT, CAMERA_WIDTH), (CAMERA_HEIGHT, 288), (CAMERA_HEIGHT, 288),
)  # fmt: skip
# Ids of the published Qwen2.5-VL tokenizer; the last one is the first that Wall-OSS adds.
_QWEN_WORDS = {
    '<|im_start|>': 151644,
    '<|im_end|>': 151645,
    '<|vision_start|>': 151652,
    '<|vision_end|>': 151653,
    '<|image_pad|>': 151655,
    '<|propri|>': 151665,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnVla:
    """
    A model with random weights, and what serves it.

    :param contract: what crosses the border between robot and server
    :param model: its functions, on the device that was asked for
    :param processor: between robot units and model space
    :param prompt_rooms: rooms for prompts, ascending [tokens]
    """

    contract: ModelContract
    model: SmolVla | Wall
    processor: SmolVlaProcessor | WallProcessor
    prompt_rooms: tuple[int, ...]


def random_family_names() -> tuple[str, ...]:
    """Return the names that ``make_random_family`` knows."""
    return tuple(_makers())


def make_random_family(name: str, options: ModelOptions) -> StagedVla:
    """
    Return a model with weights drawn from ``options.seed``, for the ALOHA robot.

    Sizes are the published ones for names that begin with ``random``.

    :param name: one of ``random_family_names()``
    """
    drawn, tiny = drawn_family(name, options), name.startswith('tiny')
    serving = ServingOptions(
        processor=drawn.processor,
        rtc=resolved_rtc(options.rtc, trained_steps=0, name=name),
        noise_scale=NOISE_SCALE,
        capture=True if tiny else None,
        prompt_rooms=drawn.prompt_rooms[-1:] if tiny else drawn.prompt_rooms,
    )
    return StagedVla(drawn.contract, drawn.model, serving)


def drawn_family(name: str, options: ModelOptions) -> DrawnVla:
    """Return the parts of the model that ``make_random_family`` makes."""
    return _makers()[name](name, options)


def _makers() -> dict[str, Callable[[str, ModelOptions], DrawnVla]]:
    return {
        'tiny_smolvla': lambda name, options: _smolvla(
            name, options, tiny_smolvla_config(), _TINY_SMOLVLA_PROMPT
        ),
        'tiny_wall': lambda name, options: _wall(
            name, options, tiny_wall_config(), _TINY_WALL_PREFIX
        ),
        'random_smolvla': lambda name, options: _smolvla(
            name, options, replace(published_smolvla(), **_ROBOT), _SMOLVLA_PROMPT
        ),
        'random_wall_oss_05': lambda name, options: _wall(
            name, options, replace(published_wall_oss_05(), **_ROBOT), _PAPER_WALL_PREFIX
        ),
        'random_vla_2b': lambda name, options: _wall(
            name, options, replace(paper_vla_2b(), **_ROBOT), _PAPER_VLA_2B_PREFIX
        ),
    }


def tiny_smolvla_config() -> SmolVlaConfig:
    """Return the sizes of a SmolVLA for tests."""
    return SmolVlaConfig(
        vision=SmolVisionConfig(
            tower=VisionConfig(
                height=CAMERA_HEIGHT,
                width=CAMERA_WIDTH,
                patch=16,
                hidden=32,
                layers=2,
                mlp=64,
                heads=2,
            ),
            fold=2,
        ),
        language=smol_decoder(hidden=64, mlp=128, **_TINY_HEADS),
        expert=smol_decoder(hidden=48, mlp=96, **_TINY_HEADS),
        vocabulary=ByteTokenizer.vocabulary,
        action_width=16,
        state_width=16,
        **_ROBOT,
    )


def tiny_wall_config() -> WallConfig:
    """Return the sizes of a Wall-OSS for tests."""
    words = _tiny_words()
    return WallConfig(
        vision=QwenVisionConfig(
            hidden=32, layers=2, mlp=64, heads=2, patch=16, window=128, full_layers=(1,)
        ),
        language=qwen_decoder(hidden=64, mlp=128, **_TINY_HEADS),
        expert=qwen_decoder(hidden=48, mlp=96, **_TINY_HEADS),
        vocabulary=max(words.values()) + 1,
        pictures=_TINY_WALL_PICTURES,
        action_width=16,
        state_width=16,
        state_hidden=64,
        image_token=words['<|image_pad|>'],
        state_token=words['<|propri|>'],
        sections=(2, 3, 3),
        **_ROBOT,
    )


def _tiny_words() -> dict[str, int]:
    return {word: ByteTokenizer.vocabulary + index for index, word in enumerate(_QWEN_WORDS)}


def _smolvla(
    name: str, options: ModelOptions, config: SmolVlaConfig, prompt_tokens: int
) -> DrawnVla:
    size = config.vision.height, config.vision.width
    processor = SmolVlaProcessor(
        statistics=aloha_statistics(),
        action_space=_action_space(),
        tokenizer=MarkedTokenizer(rest=ByteTokenizer(), words={}),
        prompt_tokens=prompt_tokens,
        model_name=name,
    )
    return DrawnVla(
        contract=_contract(name, (size,) * len(CAMERA_NAMES), prompt_tokens - 1),
        model=_drawn(lambda: SmolVla(config), options),
        processor=processor,
        prompt_rooms=prompt_rooms(prompt_tokens),
    )


def _wall(name: str, options: ModelOptions, config: WallConfig, prompt_tokens: int) -> DrawnVla:
    words = _QWEN_WORDS if config.image_token == _QWEN_WORDS['<|image_pad|>'] else _tiny_words()
    tokenizer = MarkedTokenizer(rest=ByteTokenizer(), words=words)
    grids = [config.vision.grid(*size) for size in config.pictures]
    counts = [rows * columns for rows, columns in grids]
    shortest = len(tokenizer.encode(wall_prompt('', tuple(zip(_VIEWS, counts, strict=True)))))
    processor = WallProcessor(
        statistics=aloha_statistics(),
        action_space=_action_space(),
        tokenizer=tokenizer,
        prompt_tokens=prompt_tokens,
        model_name=name,
        views=_VIEWS,
        view_tokens=tuple(counts),
    )
    return DrawnVla(
        contract=_contract(name, config.pictures, prompt_tokens - shortest),
        model=_drawn(lambda: Wall(config), options),
        processor=processor,
        prompt_rooms=prompt_rooms(prompt_tokens, shortest),
    )


def _contract(name: str, sizes: tuple[Size, ...], instruction_bytes: int) -> ModelContract:
    cameras = tuple(
        CameraSpec(name=camera, height=height, width=width)
        for camera, (height, width) in zip(CAMERA_NAMES, sizes, strict=True)
    )
    return replace(aloha_contract(name, instruction_bytes), cameras=cameras)


def _action_space() -> ActionSpace:
    limits = aloha_statistics()
    return ActionSpace(statistics=limits, limits=(limits.q01, limits.q99))


def _drawn(make: Callable[[], ModelT], options: ModelOptions) -> ModelT:
    """Return a model whose weights depend on its sizes, the seed and the device alone."""
    device = chosen_device(options.device)
    with torch.device('meta'):  # no initialisation, hence no draw from the global generator
        model = make().to(chosen_dtype(options.dtype, device))
    model.to_empty(device=device)
    generator = torch.Generator(device).manual_seed(options.seed)
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
            continue
        weight.normal_(0.0, 0.1, generator=generator)
        if isinstance(module, RmsNorm):
            weight.add_(1.0 - module.offset)
        elif isinstance(module, nn.LayerNorm) and name == 'weight':
            weight.add_(1.0)
