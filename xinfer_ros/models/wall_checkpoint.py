# SPDX-License-Identifier: Apache-2.0
"""A folder with a Wall-OSS checkpoint, in the layouts of its two published generations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_ros.errors import ModelError
from xinfer_ros.models.folder import CONFIG_FILE, read_object
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.published_weights import (
    Piece,
    Pieces,
    Progress,
    fill,
    piece_shapes,
    renamed,
    whole_pieces,
)
from xinfer_ros.models.qwen_vision import QwenVisionConfig
from xinfer_ros.models.wall import Wall
from xinfer_ros.models.wall_config import Size, WallConfig, qwen_decoder
from xinfer_ros.models.weight_files import Shape, WeightFiles

_FUSED_QKV = re.compile(r'(.*\.self_attn\.)qkv_proj(_experts\.\d+)?\.(weight|bias)')
_FUSED_GATE = re.compile(r'(.*\.)gate_up_proj\.(weight|bias)')
_LAYER = re.compile(r'(language|expert)\.layers\.(\d+)\.(\w+)\.(.*)')
_HEAD = 'action_preprocessor.'
_STATISTICS = _HEAD + 'normalizer'
# Present in published files though no token is ever predicted here.
_UNUSED = ('lm_head.weight',)
_PUBLISHED = {
    'vision.patch_embed.': 'visual.patch_embed.proj.',
    'vision.': 'visual.',
    'language.embed_tokens.': 'model.embed_tokens.',
    'w': _HEAD + 'w',
    'action_proj_back.': _HEAD + 'action_proj_back.',
    'propri_proj.': _HEAD + 'propri_proj.',
}
# What the model is built for; another value in config.json is another model.
_FIXED = {'use_adarms': False, 'use_x_pred': False, 'use_sliding_window': False}


@dataclass(frozen=True, slots=True, kw_only=True)
class WallInputs:
    """
    What a Wall-OSS checkpoint does not tell.

    :param pictures: height and width of each camera's picture [pixels]
    :param horizon: rows of a chunk, ``H``
    :param joints: columns of action and state that the robot has; None for all
    :param state_token: id of the state's place holder
    :param padding_target: see ``WallConfig``
    """

    pictures: tuple[Size, ...]
    horizon: int
    joints: int | None = None
    state_token: int = 151665
    padding_target: float | None = None


def load_wall(
    folder: Path,
    inputs: WallInputs,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> Wall:
    """
    Return the model of a folder, ready to run.

    :param folder: holds ``config.json`` and ``model.safetensors``, or parts with an index
    :param inputs: what the files do not tell
    :param device: where the model shall live
    :param dtype: what the weights are converted to
    :param progress: is told the weights read so far, and all
    :raises ConfigError: if config.json is absent or unreadable
    :raises ModelError: if there are no weights, a setting is not supported, or a weight is
        missing, surplus or of another shape; the text names it
    """
    files = WeightFiles(folder)
    settings = read_object(folder / CONFIG_FILE)
    settings = {**settings, **settings.get('text_config', {})}
    for name, value in _FIXED.items():
        if settings.get(name, value) != value:
            raise ModelError(
                f'{folder}: {name} is {settings[name]!r}, supported is {value!r} only'
            )
    try:
        pieces = _split(files, settings)
        shapes = piece_shapes(files, pieces)
        config = _sizes(shapes, settings, inputs)
    except KeyError as error:
        raise ModelError(f'{folder}: missing {error.args[0]}') from error
    except ValueError as error:
        raise ModelError(f'{folder}: {error}') from error
    with torch.device('meta'):
        model = Wall(config)
    fill(
        model,
        files,
        pieces,
        _published_names(shapes),
        unused=_UNUSED,
        device=device,
        dtype=dtype,
        progress=progress,
    )
    model.fix_times()
    return model


def _split(files: WeightFiles, settings: Mapping[str, Any]) -> Pieces:
    """Return the weights with fused projections taken apart."""
    heads, kv_heads = int(settings['num_attention_heads']), int(settings['num_key_value_heads'])
    head_dim = int(settings['hidden_size']) // heads
    pieces: dict[str, Piece] = {}
    for name, whole in whole_pieces(files, left_out=(_STATISTICS,)).items():
        if found := _FUSED_QKV.fullmatch(name):
            middle = found[2] or ''
            names = [f'{found[1]}{part}_proj{middle}.{found[3]}' for part in 'qkv']
            parts = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
        elif found := _FUSED_GATE.fullmatch(name):
            names = [f'{found[1]}{part}_proj.{found[2]}' for part in ('gate', 'up')]
            parts = [whole.stop // 2] * 2
        else:
            names, parts = [name], [whole.stop]
        if sum(parts) != whole.stop:
            raise ValueError(f'{name} has {whole.stop} rows, expected {sum(parts)}')
        start = 0
        for piece, rows in zip(names, parts, strict=True):
            pieces[piece] = Piece(stored=name, start=start, stop=start + rows)
            start += rows
    return pieces


def _published_names(stored: Mapping[str, Shape]) -> Callable[[str], str]:
    """Return what gives the published name of an own one, as far as fused parts are split."""
    attention = 'model.layers.0.self_attn.q_proj_experts.0.weight' in stored
    norms = 'model.norms.0.weight' in stored
    shared_mlp = 'model.layers.0.mlp.up_proj.weight' in stored

    def name(own: str) -> str:
        expert = 0 if own.startswith('language.') else 1
        if own in ('language.norm.weight', 'expert.norm.weight'):
            return f'model.norms.{expert}.weight' if norms else 'model.norm.weight'
        layer = _LAYER.fullmatch(own)
        if layer is None:
            return renamed(own, _PUBLISHED)
        place, block, rest = f'model.layers.{layer[2]}', layer[3], layer[4]
        if block == 'self_attn':
            middle = f'_experts.{expert}.' if attention else '.'
            return f'{place}.self_attn.' + rest.replace('.', middle, 1)
        if block == 'mlp':
            return f'{place}.mlp.{rest}' if shared_mlp else f'{place}.moe.experts.{expert}.{rest}'
        return f'{place}.{block}s.{expert}.{rest}' if norms else f'{place}.{block}.{rest}'

    return name


def _sizes(
    stored: Mapping[str, Shape], settings: Mapping[str, Any], inputs: WallInputs
) -> WallConfig:
    """Return the sizes that weights and settings tell."""
    action_width = stored[_HEAD + 'action_proj_back.weight'][0]
    masked = stored[_HEAD + 'w1.weight'][1] == 2 * action_width
    state_hidden, state_inputs = stored[_HEAD + 'propri_proj.weight']
    separate = 'model.layers.0.self_attn.q_proj_experts.0.weight' in stored
    rope = settings.get('rope_scaling') or settings['rope_parameters']
    schedule = settings.get('noise_scheduler') or {}
    return WallConfig(
        vision=_vision(settings['vision_config']),
        language=_decoder(settings, 0),
        expert=_decoder(settings, 1),
        vocabulary=stored['model.embed_tokens.weight'][0],
        pictures=inputs.pictures,
        horizon=inputs.horizon,
        action_width=action_width,
        state_width=state_inputs // 2 if masked else state_inputs,
        state_hidden=state_hidden,
        image_token=int(settings['image_token_id']),
        state_token=inputs.state_token,
        sections=tuple(rope['mrope_section']),
        rope_base=float(settings.get('rope_theta') or rope['rope_theta']),
        # The first generation shares attention, lets rows see each other and ends at time 1.
        causal_rows=separate and bool(settings.get('causal_action_attention_mask', False)),
        time_scale=float(schedule.get('s', 0.999)) if separate else 1.0,
        masked_inputs=masked,
        padding_target=inputs.padding_target,
        joints=inputs.joints,
        num_steps=int(schedule.get('num_inference_timesteps', 10)),
    )


def _vision(settings: Mapping[str, Any]) -> QwenVisionConfig:
    return QwenVisionConfig(
        hidden=int(settings['hidden_size']),
        layers=int(settings['depth']),
        mlp=int(settings['intermediate_size']),
        heads=int(settings['num_heads']),
        patch=int(settings['patch_size']),
        frames=int(settings['temporal_patch_size']),
        merge=int(settings['spatial_merge_size']),
        window=int(settings['window_size']),
        full_layers=tuple(settings['fullatt_block_indexes']),
    )


def _decoder(settings: Mapping[str, Any], expert: int) -> GemmaConfig:
    heads = int(settings['num_attention_heads'])
    return qwen_decoder(
        hidden=int(settings['experts'][expert]['hidden_size']),
        layers=int(settings['num_hidden_layers']),
        mlp=int(settings['experts'][expert]['intermediate_size']),
        heads=heads,
        kv_heads=int(settings['num_key_value_heads']),
        head_dim=int(settings['hidden_size']) // heads,
    )
