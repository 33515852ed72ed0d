# SPDX-License-Identifier: Apache-2.0
"""A π0.5 folder as LeRobot writes it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.actions import ActionSpace, relative_joints
from xinfer_ros.models.folder import CONFIG_FILE, SETTINGS_FILE
from xinfer_ros.models.lerobot_files import (
    ACTION,
    STATE,
    Steps,
    camera_names,
    feature_dim,
    read_steps,
)
from xinfer_ros.models.normalise import Statistics
from xinfer_ros.models.pi05_layout import (
    NUM_STEPS,
    PROMPT_TOKENS,
    STATE_WIDTH,
    UNPADDED,
    Pi05Layout,
    Pi05Settings,
    told_width,
)

_RENAME, _RELATIVE = 'rename_observations_processor', 'relative_actions_processor'
_NORMALISE, _TOKENISE = 'normalizer_processor', 'tokenizer_processor'
_UNNORMALISE, _ABSOLUTE = 'unnormalizer_processor', 'absolute_actions_processor'
_STATE_PROMPT = 'pi05_prepare_state_tokenizer_processor_step'
_BEFORE = {
    _RENAME, _RELATIVE, _NORMALISE, _TOKENISE, _STATE_PROMPT, 'to_batch_processor',
    'device_processor',
}  # fmt: skip
_AFTER = {_UNNORMALISE, _ABSOLUTE, 'device_processor'}
# Inputs that this version does not give a model
_NOT_SERVED = ('use_visual_memory', 'use_proprioceptive_memory')
_SAME = 1e-6


def read_lerobot(folder: Path, config: Mapping[str, Any], settings: Pi05Settings) -> Pi05Layout:
    """
    Return what the files say.

    :param config: of config.json
    :param settings: what the owner adds
    :raises ConfigError: if a file is missing or says something that can not be served
    """
    path = folder / CONFIG_FILE
    for name in _NOT_SERVED:
        if config.get(name):
            raise ConfigError(f'{path}: {name} is true; memory of past pictures is not served')
    before = read_steps(folder / 'policy_preprocessor.json', _BEFORE)
    after = read_steps(folder / 'policy_postprocessor.json', _AFTER)
    dim = _joints(config, path)
    height, width = _resolution(config, path)
    tokenise = before.config(_TOKENISE)
    names = config.get('action_feature_names') or before.config(_RELATIVE).get('action_names')
    state_width, warnings = _state_width(before, config, settings)
    artifacts = before.by_name[_TOKENISE].artifacts if _TOKENISE in before.by_name else {}
    renamed = before.config(_RENAME).get('rename_map', {})
    return Pi05Layout(
        name='LeRobot',
        horizon=_count(config, 'chunk_size', 50, path),
        num_steps=_count(config, 'num_inference_steps', NUM_STEPS, path),
        height=height,
        width=width,
        cameras=camera_names(config.get('input_features', {}), renamed),
        joint_names=tuple(names[:dim]) if names and len(names) >= dim else None,
        state=before.statistics(_NORMALISE, STATE).selected(dim),
        action_space=_action_space(before, after, dim, settings),
        state_width=state_width,
        prompt_tokens=int(tokenise.get('max_length') or PROMPT_TOKENS),
        trained_steps=_count(config, 'rtc_training_max_delay', 0, path),
        tokenizer_places=tuple(artifacts.values()),
        warnings=warnings,
    )


def _joints(config: Mapping[str, Any], path: Path) -> int:
    states = feature_dim(config.get('input_features', {}), STATE, path)
    dim = feature_dim(config.get('output_features', {}), ACTION, path)
    if states != dim:
        raise ConfigError(
            f'{path}: the state has {states} values and an action {dim}; a robot is served whose '
            'actions have the joints of its state'
        )
    return dim


def _resolution(config: Mapping[str, Any], path: Path) -> tuple[int, int]:
    size = config.get('image_resolution', [224, 224])
    if not isinstance(size, list) or len(size) != 2 or not all(type(n) is int for n in size):
        raise ConfigError(f'{path}: image_resolution is {size!r}; allowed: rows and columns')
    return size[0], size[1]


def _count(config: Mapping[str, Any], name: str, default: int, path: Path) -> int:
    value = config.get(name, default)
    if type(value) is not int or value < 0:
        raise ConfigError(f'{path}: {name} is {value!r}; allowed: a whole number')
    return value


def _state_width(
    before: Steps, config: Mapping[str, Any], settings: Pi05Settings
) -> tuple[int | None, tuple[str, ...]]:
    """Return to which width the state is padded in the prompt, and what had to be assumed."""
    width = int(config.get('max_state_dim', STATE_WIDTH))
    if settings.state_prompt is not None:
        return told_width(settings.state_prompt, width), ()
    if _RELATIVE in before.by_name:  # written from LeRobot 0.5.1 on, which does not pad
        return 0, ()
    return width, (
        f'the files are of LeRobot 0.4, which pads the state in the prompt to {width} numbers, or '
        'of 0.5.0, which does not; padded is assumed. If 0.5.0 or openpi trained the model, write '
        f'{{"state_prompt": "{UNPADDED}"}} into {SETTINGS_FILE}',
    )


def _action_space(before: Steps, after: Steps, dim: int, settings: Pi05Settings) -> ActionSpace:
    given = before.statistics(_NORMALISE, ACTION).selected(dim)
    taken = after.statistics(_UNNORMALISE, ACTION).selected(dim)
    _expect_same(given, taken, after.path)
    step = before.config(_RELATIVE)
    enabled = bool(step.get('enabled', False))
    if enabled != bool(after.config(_ABSOLUTE).get('enabled', False)):
        raise ConfigError(
            f'{after.path}: {_ABSOLUTE} must be enabled exactly where {_RELATIVE} is'
        )
    if settings.relative_actions is not None:
        enabled = settings.relative_actions
    names, absolute = step.get('action_names'), step.get('exclude_joints', ())
    if settings.absolute_joints is not None:
        names, absolute = settings.joint_names or names, settings.absolute_joints
    relative = relative_joints(names, absolute, dim) if enabled else None
    return ActionSpace(statistics=taken, relative=relative)


def _expect_same(given: Statistics, taken: Statistics, path: Path) -> None:
    """Refuse statistics of actions that differ between the two processors."""
    probe = np.stack((np.full(taken.dim, -1.0), np.full(taken.dim, 1.0)))
    same = type(given) is type(taken) and given.dim == taken.dim
    if not same or not np.allclose(given.unnormalise(probe), taken.unnormalise(probe), atol=_SAME):
        raise ConfigError(f'{path}: the statistics of action are not those of the preprocessor')
