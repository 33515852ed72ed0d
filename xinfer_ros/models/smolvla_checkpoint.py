# SPDX-License-Identifier: Apache-2.0
"""A folder with a SmolVLA checkpoint as LeRobot writes it, read strictly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from xinfer_ros.errors import ModelError
from xinfer_ros.models.published_weights import (
    count_layers,
    matched,
    read_json,
    read_weights,
    renamed,
)
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.smolvla import SmolVla, SmolVlaConfig, smol_decoder
from xinfer_ros.models.smolvla_vision import SmolVisionConfig

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


def load_smolvla(
    folder: Path,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    head_dim: int = 64,
    vision_head_dim: int = 64,
) -> SmolVla:
    """
    Return the model of a folder, ready to run.

    Sizes come from the weights and from ``config.json``; only the widths of the heads are in
    neither, because LeRobot asks the hub for them.

    :param folder: holds ``config.json`` and ``model.safetensors``
    :param device: where the model shall live
    :param dtype: what the weights are converted to
    :param head_dim: width of a head of the decoders; 64 in all published SmolLM2
    :param vision_head_dim: width of a head of the vision tower; 64 in the published one
    :raises ModelError: if a file is absent or unreadable, a setting is not supported, or a weight
        is missing, surplus or of another shape; the text names it
    """
    stored = _bare(read_weights(folder, device))
    settings = read_json(folder / 'config.json')
    config = _sizes(stored, settings, head_dim, vision_head_dim, folder)
    with torch.device('meta'):
        model = SmolVla(config)
    weights = matched(stored, model.state_dict(), published_name, unused=_UNUSED, source=folder)
    converted = {name: weight.to(dtype) for name, weight in weights.items()}
    model.load_state_dict(converted, strict=True, assign=True)
    model.requires_grad_(False).eval()
    model.fix_times()
    return model


def _bare(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights without ``model.`` before their names and without statistics."""
    weights = {name: stored[name] for name in stored if not name.startswith(_STATISTICS)}
    if all(name.startswith(_OPTIONAL_PREFIX) for name in weights):
        return {name.removeprefix(_OPTIONAL_PREFIX): weights[name] for name in weights}
    return weights


def _sizes(
    stored: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    head_dim: int,
    vision_head_dim: int,
    folder: Path,
) -> SmolVlaConfig:
    """Return the sizes that weights and settings tell."""
    for name, value in _FIXED.items():
        if settings.get(name, value) != value:
            raise ModelError(
                f'{folder}: {name} is {settings[name]!r}, supported is {value!r} only'
            )
    try:
        return SmolVlaConfig(
            vision=_vision(stored, vision_head_dim),
            language=smol_decoder(**_decoder(stored, _VLM + 'text_model.', head_dim)),
            expert=smol_decoder(**_decoder(stored, _EXPERT, head_dim)),
            vocabulary=stored[_VLM + 'text_model.embed_tokens.weight'].shape[0],
            horizon=int(settings['chunk_size']),
            action_width=stored['action_in_proj.weight'].shape[1],
            state_width=stored['state_proj.weight'].shape[1],
            self_every=_self_every(settings),
            num_steps=int(settings.get('num_steps', 10)),
        )
    except KeyError as error:
        raise ModelError(f'{folder}: missing {error.args[0]}') from error
    except ValueError as error:
        raise ModelError(f'{folder}: {error}') from error


def _self_every(settings: Mapping[str, Any]) -> int:
    if 'cross' not in str(settings.get('attention_mode', 'cross_attn')):
        return 1
    return max(0, int(settings.get('self_attn_every_n_layers', 2)))


def _vision(stored: Mapping[str, Tensor], head_dim: int) -> SmolVisionConfig:
    prefix = _VLM + 'vision_model.'
    hidden, _, patch, _ = stored[prefix + 'embeddings.patch_embedding.weight'].shape
    places = stored[prefix + 'embeddings.position_embedding.weight'].shape[0]
    edge = round(places**0.5) * patch
    folded = stored[_VLM + 'connector.modality_projection.proj.weight'].shape[1]
    return SmolVisionConfig(
        tower=VisionConfig(
            height=edge,
            width=edge,
            patch=patch,
            hidden=hidden,
            layers=count_layers(stored, prefix + 'encoder.layers.'),
            mlp=stored[prefix + 'encoder.layers.0.mlp.fc1.weight'].shape[0],
            heads=hidden // head_dim,
        ),
        fold=round((folded / hidden) ** 0.5),
    )


def _decoder(stored: Mapping[str, Tensor], prefix: str, head_dim: int) -> dict[str, int]:
    first = prefix + 'layers.0.'
    queries, hidden = stored[first + 'self_attn.q_proj.weight'].shape
    return {
        'hidden': hidden,
        'layers': count_layers(stored, prefix + 'layers.'),
        'mlp': stored[first + 'mlp.gate_proj.weight'].shape[0],
        'heads': queries // head_dim,
        'kv_heads': stored[first + 'self_attn.k_proj.weight'].shape[0] // head_dim,
        'head_dim': head_dim,
    }
