# SPDX-License-Identifier: Apache-2.0
"""SmolVLA from a folder as LeRobot writes it: contract, sizes and processor, then the weights."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.bare_tokenizer import bare_tokenizer
from xinfer_ros.models.devices import chosen_device, chosen_dtype
from xinfer_ros.models.family_processor import MarkedTokenizer, SmolVlaProcessor
from xinfer_ros.models.folder import (
    CONFIG_FILE,
    SETTINGS_FILE,
    Difference,
    FolderReport,
    Progress,
    owner_setting,
    read_object,
    read_settings,
)
from xinfer_ros.models.lerobot_files import (
    ACTION,
    STATE,
    Steps,
    camera_names,
    feature_dim,
    read_steps,
)
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.rtc import RtcOptions, resolved_rtc
from xinfer_ros.models.smolvla import SmolVla
from xinfer_ros.models.smolvla_checkpoint import SmolVlaFiles, load_smolvla, smolvla_files
from xinfer_ros.models.staged import ServingOptions, StagedVla
from xinfer_ros.models.tokenizer import ByteTokenizer, Tokenizer
from xinfer_ros.models.weight_files import WeightFiles

_RENAME, _NEW_LINE = 'rename_observations_processor', 'smolvla_new_line_processor'
_NORMALISE, _TOKENISE = 'normalizer_processor', 'tokenizer_processor'
_UNNORMALISE = 'unnormalizer_processor'
_BEFORE = {_RENAME, _NEW_LINE, _NORMALISE, _TOKENISE, 'to_batch_processor', 'device_processor'}
_AFTER = {_UNNORMALISE, 'device_processor'}
_PUBLISHED_TOKENIZER = 'HuggingFaceTB/SmolVLM2-500M-Video-Instruct'
_PROMPT_TOKENS, _HEAD_DIM, _INSTRUCTION_BYTES = 48, 64, 400

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlaSettings:
    """What the owner of a folder may add in ``xinfer.json``; it goes before what files say."""

    head_dim: int | None = owner_setting(int, 'width of a head of the decoders, 64 if not said')
    vision_head_dim: int | None = owner_setting(
        int, 'width of a head of the vision tower, 64 if not said'
    )
    joint_names: tuple[str, ...] | None = owner_setting(list, 'the joints, in the order of rows')
    tokenizer: str | None = owner_setting(
        str, 'bytes: one token a byte, for random weights', choices=('bytes',)
    )
    prompt_tokens: int | None = owner_setting(int, 'room for a prompt [tokens]')


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlaFolder:
    """
    Everything that a folder says but its weights.

    :param files: the weights' files and the sizes
    :param contract: what crosses the border between robot and server
    :param processor: between robot units and model space
    :param rtc: how chunks are tied, with a mode
    :param tokenizer: where the tokenizer was found
    :param warnings: what had to be assumed
    """

    files: SmolVlaFiles
    contract: ModelContract
    processor: SmolVlaProcessor
    rtc: RtcOptions
    tokenizer: str
    warnings: tuple[str, ...]


def load(folder: Path, options: ModelOptions, progress: Progress | None = None) -> StagedVla:
    """
    Return the model of a folder.

    :param progress: is told the weights read so far, and all
    :raises ConfigError: if a file is missing or says something that can not be served
    :raises ModelError: if a weight is missing, surplus or of another shape
    """
    device = chosen_device(options.device)
    found = read_folder(folder, options)
    for warning in found.warnings:
        _log.warning('%s: %s', folder, warning)
    dtype = chosen_dtype(options.dtype, device)
    model = load_smolvla(found.files, device=device, dtype=dtype, progress=progress)
    use = ServingOptions(processor=found.processor, rtc=found.rtc)
    return StagedVla(found.contract, model, use)


def read_folder(folder: Path, options: ModelOptions) -> SmolVlaFolder:
    """
    Return what a folder says; of the weights only their shapes are read.

    :raises ConfigError: if a file is missing or says something that can not be served
    """
    settings = read_settings(folder, SmolVlaSettings)
    path, config = folder / CONFIG_FILE, read_object(folder / CONFIG_FILE)
    before = read_steps(folder / 'policy_preprocessor.json', _BEFORE)
    after = read_steps(folder / 'policy_postprocessor.json', _AFTER)
    dim = _joints(config, path)
    files = smolvla_files(
        folder,
        head_dim=settings.head_dim or _HEAD_DIM,
        vision_head_dim=settings.vision_head_dim or _HEAD_DIM,
        joints=dim,
    )
    tokenizer, where = _tokenizer(folder, before, settings)
    processor = SmolVlaProcessor(
        statistics=before.statistics(_NORMALISE, STATE).selected(dim),
        action_space=ActionSpace(statistics=after.statistics(_UNNORMALISE, ACTION).selected(dim)),
        tokenizer=tokenizer,
        prompt_tokens=settings.prompt_tokens or _room(before),
        model_name=folder.name,
    )
    names, warnings = _joint_names(settings, dim, path)
    fits = isinstance(tokenizer, MarkedTokenizer)  # a byte a token: what fits is known
    contract = ModelContract(
        name=folder.name,
        cameras=_cameras(config, before, files),
        joint_names=names,
        horizon=files.config.horizon,
        max_commitment_steps=files.config.horizon // 2,
        max_instruction_bytes=processor.prompt_tokens - 1 if fits else _INSTRUCTION_BYTES,
        network=WeightFiles(folder).network(files.config.num_steps),
    )
    return SmolVlaFolder(
        files=files,
        contract=contract,
        processor=processor,
        rtc=resolved_rtc(options.rtc, trained_steps=0, name=folder.name),
        tokenizer=where,
        warnings=warnings,
    )


def report(folder: Path, options: ModelOptions) -> FolderReport:
    """Return what a folder holds, without reading its weights."""
    found = read_folder(folder, options)
    config, contract = found.files.config, found.contract
    with torch.device('meta'):
        weights = sum(weight.numel() for weight in SmolVla(config).parameters())
    dtype = chosen_dtype(options.dtype, chosen_device(options.device))
    state, action = found.processor.statistics, found.processor.action_space.statistics
    facts = (
        ('files written by', 'LeRobot'),
        ('weights', f'{weights:,} as {str(dtype).removeprefix("torch.")}'),
        (
            'vision',
            f'{config.vision.height}x{config.vision.width}, {config.vision.num_tokens} tokens a '
            'camera',
        ),
        ('language model', f'{config.language.layers} layers of width {config.language.hidden}'),
        ('action expert', f'width {config.expert.hidden}; K = {config.num_steps}'),
        ('tokenizer', f'{found.tokenizer}; room for {found.processor.prompt_tokens} tokens'),
    )
    return FolderReport(
        family='SmolVLA',
        contract=contract,
        facts=facts,
        joints=tuple(
            (name, state.described(joint), action.described(joint), 'absolute')
            for joint, name in enumerate(contract.joint_names)
        ),
        warnings=found.warnings,
    )


def differences(
    folder: Path, options: ModelOptions, progress: Progress | None = None
) -> list[Difference]:
    """Load the weights strictly; folders with known answers are not defined for this family."""
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    load_smolvla(read_folder(folder, options).files, device=device, dtype=dtype, progress=progress)
    return []


def _joints(config: Mapping[str, Any], path: Path) -> int:
    states = feature_dim(config.get('input_features', {}), STATE, path)
    dim = feature_dim(config.get('output_features', {}), ACTION, path)
    if states != dim:
        raise ConfigError(
            f'{path}: the state has {states} values and an action {dim}; a robot is served whose '
            'actions have the joints of its state'
        )
    return dim


def _cameras(
    config: Mapping[str, Any], before: Steps, files: SmolVlaFiles
) -> tuple[CameraSpec, ...]:
    renamed = before.config(_RENAME).get('rename_map', {})
    vision = files.config.vision
    return tuple(
        CameraSpec(name=name, height=vision.height, width=vision.width, anchor='lower_right')
        for name in camera_names(config.get('input_features', {}), renamed)
    )


def _room(before: Steps) -> int:
    return int(before.config(_TOKENISE).get('max_length') or _PROMPT_TOKENS)


def _tokenizer(folder: Path, before: Steps, settings: SmolVlaSettings) -> tuple[Tokenizer, str]:
    if settings.tokenizer is not None:
        return MarkedTokenizer(rest=ByteTokenizer(), words={}), 'one token a byte'
    step = before.by_name.get(_TOKENISE)
    places = () if step is None else tuple(step.artifacts.values())
    return bare_tokenizer(folder, places, _PUBLISHED_TOKENIZER)


def _joint_names(
    settings: SmolVlaSettings, dim: int, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the joints, and a warning if no file tells them."""
    names = settings.joint_names
    if names is None:
        return tuple(f'joint_{index}' for index in range(dim)), (
            f'no file names the {dim} joints, so they are joint_0 to joint_{dim - 1}; robots must '
            f'call them so, or write joint_names into {SETTINGS_FILE}',
        )
    if len(names) != dim or len(set(names)) != dim or None in names:
        raise ConfigError(
            f'{path}: the joints are {list(names)}; {dim} different names are needed'
        )
    return names, ()
