# SPDX-License-Identifier: Apache-2.0
"""The sizes of a π0.5 model, from the shapes of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.checkpoint import EXPERT, PALIGEMMA
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05Config
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.weight_files import Shape

_VISION = PALIGEMMA + 'model.vision_tower.vision_model.'
_LANGUAGE = PALIGEMMA + 'model.language_model.'
_PUBLISHED_VISION = (1152, 16)  # width and heads of the only published vision tower
# Weights that π0 has and π0.5 has not
_PI0_ONLY = ('state_proj.weight', 'action_time_mlp_in.weight')


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """
    What the shapes of weights do not tell.

    :param vision_heads: heads of the vision tower, None if the owner has not said
    :param kv_heads: key heads of language model and expert
    :param height: rows of a picture [pixels]
    :param width: columns of a picture [pixels]
    :param horizon: rows of a chunk, ``H``
    :param num_steps: Euler steps, ``K``
    :param joints: columns of a row that a robot has
    """

    vision_heads: int | None = None
    kv_heads: int = 1
    height: int
    width: int
    horizon: int
    num_steps: int
    joints: int


def inferred_config(shapes: Mapping[str, Shape], untold: Untold, folder: Path) -> Pi05Config:
    """
    Return the sizes of a model.

    :param shapes: of the weights, by published name without ``model.``
    :param untold: the rest
    :param folder: for error texts
    :raises ConfigError: if the shapes are not those of π0.5, or the rest does not fit to them
    """
    if any(name in shapes for name in _PI0_ONLY):
        raise ConfigError(f'{folder}: these are weights of π0; this version serves π0.5')
    try:
        return Pi05Config(
            vision=_vision(shapes, untold, folder),
            language=_decoder(shapes, _LANGUAGE, untold.kv_heads),
            expert=_decoder(shapes, EXPERT + 'model.', untold.kv_heads),
            vocabulary=_embedding(shapes)[0],
            horizon=untold.horizon,
            action_width=shapes['action_in_proj.weight'][1],
            num_steps=untold.num_steps,
            joints=untold.joints,
        )
    except KeyError as error:
        raise ConfigError(
            f'{folder}: the weights lack {error.args[0]}; they are not those of π0.5'
        ) from None
    except ValueError as error:
        raise ConfigError(f'{folder}: {error}') from None


def _embedding(shapes: Mapping[str, Shape]) -> Shape:
    tied = shapes.get(PALIGEMMA + 'lm_head.weight')
    return shapes.get(_LANGUAGE + 'embed_tokens.weight') or tied or shapes['embed_tokens.weight']


def _vision(shapes: Mapping[str, Shape], untold: Untold, folder: Path) -> VisionConfig:
    hidden, _, patch, _ = shapes[_VISION + 'embeddings.patch_embedding.weight']
    tokens = shapes[_VISION + 'embeddings.position_embedding.weight'][0]
    config = VisionConfig(
        height=untold.height,
        width=untold.width,
        patch=patch,
        hidden=hidden,
        layers=_layers(shapes, _VISION + 'encoder.layers.'),
        mlp=shapes[_VISION + 'encoder.layers.0.mlp.fc1.weight'][0],
        heads=_vision_heads(hidden, untold.vision_heads, folder),
    )
    if config.num_tokens != tokens:
        raise ConfigError(
            f'{folder}: pictures of {untold.height}x{untold.width} are {config.num_tokens} '
            f'patches of {patch}, the weights have places for {tokens}; mend image_resolution'
        )
    return config


def _vision_heads(hidden: int, told: int | None, folder: Path) -> int:
    if told is not None:
        return told
    if hidden == _PUBLISHED_VISION[0]:
        return _PUBLISHED_VISION[1]
    raise ConfigError(
        f'{folder}: no file tells how many heads the vision tower has, of width {hidden}; write '
        f'{{"vision_heads": N}} into {folder / "xinfer.json"}'
    )


def _decoder(shapes: Mapping[str, Shape], prefix: str, kv_heads: int) -> GemmaConfig:
    first = prefix + 'layers.0.'
    queries, hidden = shapes[first + 'self_attn.q_proj.weight']
    keys = shapes[first + 'self_attn.k_proj.weight'][0]
    if keys % kv_heads or queries % (keys // kv_heads):
        raise ValueError(
            f'kv_heads is {kv_heads}; keys of width {keys} and queries of {queries} can not be '
            'divided so'
        )
    return GemmaConfig(
        hidden=hidden,
        layers=_layers(shapes, prefix + 'layers.'),
        mlp=shapes[first + 'mlp.gate_proj.weight'][0],
        heads=queries // (keys // kv_heads),
        kv_heads=kv_heads,
        head_dim=keys // kv_heads,
    )


def _layers(shapes: Mapping[str, Shape], prefix: str) -> int:
    numbers = {name[len(prefix) :].split('.')[0] for name in shapes if name.startswith(prefix)}
    return len(numbers)
