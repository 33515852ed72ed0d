# SPDX-License-Identifier: Apache-2.0
"""A folder with a SmolVLA checkpoint as LeRobot writes it, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_ros.errors import ModelError
from xinfer_ros.models.folder import CONFIG_FILE, read_object
from xinfer_ros.models.published_weights import (
    Pieces,
    Progress,
    count_layers,
    fill,
    piece_shapes,
    renamed,
    whole_pieces,
)
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.smolvla import SmolVla, SmolVlaConfig, smol_decoder
from xinfer_ros.models.smolvla_vision import SmolVisionConfig
from xinfer_ros.models.weight_files import Shape, WeightFiles

_OPTIONAL_PREFIX = 'model.'
_VLM = 'vlm_with_expert.vlm.model.'
_EXPERT = 'vlm_with_expert.lm_expert.'
_PUBLISHED = {
    'vision.tower.': _VLM + 'vision_model.',
    'vision.projector.': _VLM + 'connector.modality_projection.proj.',
    'language.': _VLM + 'text_model.',
    'expert.': _EXPERT,
}
# Present in published files though SmolVLA never predicts a token.
_UNUSED = ('vlm_with_expert.vlm.lm_head.weight',)
# Statistics that early writers kept among the weights; the processors' files hold them now.
_STATISTICS = ('normalize_inputs.', 'normalize_targets.', 'unnormalize_outputs.')
# What the model is built for; another value in config.json is another model.
_FIXED = {
    'add_image_special_tokens': False,
    'adapt_to_pi_aloha': False,
    'min_period': 4e-3,
    'max_period': 4.0,
}


def published_name(name: str) -> str:
    """Return the name that published files give to the parameter ``name`` of ``SmolVla``."""
    return renamed(name, _PUBLISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlaFiles:
    """
    The files of a SmolVLA folder.

    :param files: the weights
    :param pieces: the weights by published name
    :param config: the sizes that weights and ``config.json`` tell
    """

    files: WeightFiles
    pieces: Pieces
    config: SmolVlaConfig


def smolvla_files(
    folder: Path, *, head_dim: int = 64, vision_head_dim: int = 64, joints: int | None = None
) -> SmolVlaFiles:
    """
    Return what a folder holds; of the weights only their shapes are read.

    Sizes come from the weights and from ``config.json``; only the widths of the heads are in
    neither, because LeRobot asks the hub for them.

    :param folder: holds ``config.json`` and ``model.safetensors``
    :param head_dim: width of a head of the decoders; 64 in all published SmolLM2
    :param vision_head_dim: width of a head of the vision tower; 64 in the published one
    :param joints: columns of a row that the robot has; None for all
    :raises ConfigError: if config.json is absent or unreadable
    :raises ModelError: if there are no weights, or those of another model
    """
    files = WeightFiles(folder)
    named = any(name.startswith(_OPTIONAL_PREFIX + 'vlm') for name in files.shapes)
    prefix = _OPTIONAL_PREFIX if named else ''
    pieces = whole_pieces(files, prefix=prefix, left_out=_STATISTICS)
    settings = read_object(folder / CONFIG_FILE)
    for name, value in _FIXED.items():
        if settings.get(name, value) != value:
            raise ModelError(
                f'{folder}: {name} is {settings[name]!r}, supported is {value!r} only'
            )
    try:
        config = _sizes(piece_shapes(files, pieces), settings, (head_dim, vision_head_dim), joints)
    except KeyError as error:
        raise ModelError(f'{folder}: missing {error.args[0]}') from error
    except ValueError as error:
        raise ModelError(f'{folder}: {error}') from error
    size = [config.vision.width, config.vision.height]
    if list(settings.get('resize_imgs_with_padding') or size) != size:
        raise ModelError(
            f'{folder}: resize_imgs_with_padding is {settings["resize_imgs_with_padding"]}, the '
            f'vision tower has places for {size}; other sizes are not supported'
        )
    return SmolVlaFiles(files=files, pieces=pieces, config=config)


def load_smolvla(
    found: SmolVlaFiles,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> SmolVla:
    """
    Return the model of a folder, ready to run.

    :param found: from ``smolvla_files``
    :param device: where the model shall live
    :param dtype: what the weights are converted to
    :param progress: is told the weights read so far, and all
    :raises ModelError: if a weight is missing, surplus or of another shape; the text names it
    """
    with torch.device('meta'):
        model = SmolVla(found.config)
    fill(
        model,
        found.files,
        found.pieces,
        published_name,
        unused=_UNUSED,
        device=device,
        dtype=dtype,
        progress=progress,
    )
    model.fix_times()
    return model


def _sizes(
    shapes: Mapping[str, Shape],
    settings: Mapping[str, Any],
    head_dims: tuple[int, int],
    joints: int | None,
) -> SmolVlaConfig:
    """Return the sizes that weights and settings tell."""
    return SmolVlaConfig(
        vision=_vision(shapes, head_dims[1]),
        language=smol_decoder(**_decoder(shapes, _VLM + 'text_model.', head_dims[0])),
        expert=smol_decoder(**_decoder(shapes, _EXPERT, head_dims[0])),
        vocabulary=shapes[_VLM + 'text_model.embed_tokens.weight'][0],
        horizon=int(settings['chunk_size']),
        action_width=shapes['action_in_proj.weight'][1],
        state_width=shapes['state_proj.weight'][1],
        self_every=_self_every(settings),
        num_steps=int(settings.get('num_steps', 10)),
        joints=joints,
    )


def _self_every(settings: Mapping[str, Any]) -> int:
    if 'cross' not in str(settings.get('attention_mode', 'cross_attn')):
        return 1
    return max(0, int(settings.get('self_attn_every_n_layers', 2)))


def _vision(stored: Mapping[str, Shape], head_dim: int) -> SmolVisionConfig:
    prefix = _VLM + 'vision_model.'
    hidden, _, patch, _ = stored[prefix + 'embeddings.patch_embedding.weight']
    places = stored[prefix + 'embeddings.position_embedding.weight'][0]
    edge = round(places**0.5) * patch
    folded = stored[_VLM + 'connector.modality_projection.proj.weight'][1]
    return SmolVisionConfig(
        tower=VisionConfig(
            height=edge,
            width=edge,
            patch=patch,
            hidden=hidden,
            layers=count_layers(stored, prefix + 'encoder.layers.'),
            mlp=stored[prefix + 'encoder.layers.0.mlp.fc1.weight'][0],
            heads=hidden // head_dim,
        ),
        fold=round((folded / hidden) ** 0.5),
    )


def _decoder(stored: Mapping[str, Shape], prefix: str, head_dim: int) -> dict[str, int]:
    first = prefix + 'layers.0.'
    queries, hidden = stored[first + 'self_attn.q_proj.weight']
    return {
        'hidden': hidden,
        'layers': count_layers(stored, prefix + 'layers.'),
        'mlp': stored[first + 'mlp.gate_proj.weight'][0],
        'heads': queries // head_dim,
        'kv_heads': stored[first + 'self_attn.k_proj.weight'][0] // head_dim,
        'head_dim': head_dim,
    }
