# SPDX-License-Identifier: Apache-2.0
"""π0.5 from a folder: a contract, sizes and a processor from its files, then the weights."""

import logging
from dataclasses import replace
from pathlib import Path

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.checkpoint import load_pi05
from xinfer_ros.models.devices import chosen_device, chosen_dtype
from xinfer_ros.models.folder import (
    CONFIG_FILE,
    SETTINGS_FILE,
    Difference,
    FolderReport,
    Progress,
    read_object,
    read_settings,
)
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.oracle import ORACLE_FILE, pi05_differences
from xinfer_ros.models.pi05_flow import Pi05Flow
from xinfer_ros.models.pi05_layout import Pi05Layout, Pi05Settings
from xinfer_ros.models.pi05_lerobot import read_lerobot
from xinfer_ros.models.pi05_openpi import read_openpi
from xinfer_ros.models.pi05_report import Pi05Folder, pi05_report
from xinfer_ros.models.pi05_sizes import Untold, inferred_config
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.rtc import RtcMode, RtcOptions, resolved_rtc
from xinfer_ros.models.staged import ServingOptions, StagedVla
from xinfer_ros.models.tokenizer import (
    ByteTokenizer,
    Tokenizer,
    longest_state_prompt_bytes,
    stateless_prompt,
)
from xinfer_ros.models.tokenizer_files import folder_tokenizer
from xinfer_ros.models.weight_files import WeightFiles

_PUBLISHED_TOKENIZER = 'google/paligemma-3b-pt-224'
_INSTRUCTION_BYTES = 400
_EXAMPLE = 'pick up the cube'

_log = logging.getLogger(__name__)


def load(folder: Path, options: ModelOptions, progress: Progress | None = None) -> StagedVla:
    """
    Return the model of a folder.

    :param progress: is told the weights read so far, and all
    :raises ConfigError: if a file is missing or says something that can not be served
    :raises ModelError: if a weight is missing, surplus or of another shape
    """
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    found = read_folder(folder, options)
    for warning in found.warnings:
        _log.warning('%s: %s', folder, warning)
    model = load_pi05(folder, found.config, device=device, dtype=dtype, progress=progress)
    use = ServingOptions(processor=found.processor, rtc=found.rtc)
    return StagedVla(found.contract, Pi05Flow(model), use)


def read_folder(folder: Path, options: ModelOptions) -> Pi05Folder:
    """
    Return what a folder says; of the weights only their shapes are read.

    :raises ConfigError: if a file is missing or says something that can not be served
    """
    settings = read_settings(folder, Pi05Settings)
    layout = _layout(folder, settings)
    untold = Untold(
        vision_heads=settings.vision_heads,
        kv_heads=settings.kv_heads or 1,
        height=layout.height,
        width=layout.width,
        horizon=layout.horizon,
        num_steps=settings.num_steps or layout.num_steps,
        joints=layout.action_space.dim,
    )
    config = inferred_config(WeightFiles(folder).shapes, untold, folder)
    if layout.action_space.dim > config.action_width:
        raise ConfigError(
            f'{folder}: {layout.action_space.dim} joints, the weights have room for '
            f'{config.action_width}'
        )
    tokenizer, where = _tokenizer(folder, layout, settings, config.vocabulary)
    rtc = resolved_rtc(options.rtc, trained_steps=layout.trained_steps, name=folder.name)
    prompt = StatePrompt(
        statistics=layout.state,
        tokenizer=tokenizer,
        tokens=settings.prompt_tokens or layout.prompt_tokens,
        state_width=layout.state_width,
        vocabulary=config.vocabulary,
        model_name=folder.name,
    )
    joints, assumed = _joint_names(folder, layout, settings)
    for part in settings.absolute_joints or ():
        if not any(part.lower() in joint.lower() for joint in joints):
            raise ConfigError(
                f'{folder}/xinfer.json: absolute_joints has {part!r}, but no joint is called so: '
                f'{", ".join(joints)}; write joint_names too'
            )
    return Pi05Folder(
        layout=layout,
        config=config,
        contract=ModelContract(
            name=folder.name,
            cameras=_cameras(folder, layout, settings),
            joint_names=joints,
            horizon=config.horizon,
            max_commitment_steps=_max_commitment(layout, rtc),
            max_instruction_bytes=_instruction_bytes(folder, prompt),
            network=WeightFiles(folder).network(config.num_steps),
        ),
        processor=Pi05Processor(state_prompt=prompt, action_space=layout.action_space),
        rtc=rtc,
        tokenizer=where,
        warnings=(*layout.warnings, *assumed),
    )


def report(folder: Path, options: ModelOptions) -> FolderReport:
    """Return what a folder holds, without reading its weights."""
    device = chosen_device(options.device)
    return pi05_report(read_folder(folder, options), chosen_dtype(options.dtype, device))


def differences(
    folder: Path, options: ModelOptions, progress: Progress | None = None
) -> list[Difference]:
    """Load the weights strictly and compare with the folder's known answers, if it has any."""
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    # known answers are guided in every column, padding included
    config = replace(read_folder(folder, options).config, joints=None)
    model = load_pi05(folder, config, device=device, dtype=dtype, progress=progress)
    oracle = folder / ORACLE_FILE
    return pi05_differences(model, oracle) if oracle.is_file() else []


def _layout(folder: Path, settings: Pi05Settings) -> Pi05Layout:
    config = read_object(folder / CONFIG_FILE)
    read = read_openpi if config.get('type') is None else read_lerobot
    return read(folder, config, settings)


def _tokenizer(
    folder: Path, layout: Pi05Layout, settings: Pi05Settings, vocabulary: int
) -> tuple[Tokenizer, str]:
    tokenizer: Tokenizer = ByteTokenizer()
    where = 'one token a byte'
    if settings.tokenizer is None:
        tokenizer, where = folder_tokenizer(folder, layout.tokenizer_places, _PUBLISHED_TOKENIZER)
    if max(tokenizer.encode(_EXAMPLE)) >= vocabulary:
        raise ConfigError(
            f'{folder}: the tokenizer ({where}) has {tokenizer.vocabulary} ids, the weights have '
            f'{vocabulary}; it belongs to another model'
        )
    return tokenizer, where


def _cameras(folder: Path, layout: Pi05Layout, settings: Pi05Settings) -> tuple[CameraSpec, ...]:
    names: tuple[str | None, ...] = layout.cameras
    if settings.cameras is not None:
        if len(settings.cameras) != len(names):
            raise ConfigError(
                f'{folder / SETTINGS_FILE}: cameras has {len(settings.cameras)} entries, the '
                f'model has {len(names)} pictures: {", ".join(layout.cameras)}'
            )
        names = settings.cameras
    # A picture that the robot lacks is left out: nothing would attend to it.
    real = [name for name in names if name is not None]
    if not real or len(set(real)) != len(real):
        raise ConfigError(f'{folder}: the cameras are {real}; at least one, and each once')
    return tuple(CameraSpec(name=name, height=layout.height, width=layout.width) for name in real)


def _joint_names(
    folder: Path, layout: Pi05Layout, settings: Pi05Settings
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the joints, and a warning if no file tells them."""
    dim = layout.action_space.dim
    names = settings.joint_names or layout.joint_names
    if names is None:
        return tuple(f'joint_{index}' for index in range(dim)), (
            f'no file names the {dim} joints, so they are joint_0 to joint_{dim - 1}; robots must '
            f'call them so, or write joint_names into {SETTINGS_FILE}',
        )
    if len(names) != dim or len(set(names)) != dim or None in names:
        raise ConfigError(
            f'{folder}: the joints are {list(names)}; {dim} different names are needed'
        )
    return names, ()


def _max_commitment(layout: Pi05Layout, rtc: RtcOptions) -> int:
    return layout.trained_steps if rtc.mode is RtcMode.HARD_PREFIX else layout.horizon // 2


def _instruction_bytes(folder: Path, prompt: StatePrompt) -> int:
    """Return how long an instruction may be; one that a byte tokenizer takes always fits."""
    if not isinstance(prompt.tokenizer, ByteTokenizer):
        return _INSTRUCTION_BYTES
    width = prompt.state_width
    fixed = 1 + len(stateless_prompt(''))
    if width is not None:
        fixed = 1 + longest_state_prompt_bytes(prompt.statistics.dim, width)
    if fixed >= prompt.tokens:
        raise ConfigError(
            f'{folder}: the state alone needs {fixed} tokens of the prompt, there is room for '
            f'{prompt.tokens}; raise prompt_tokens in {SETTINGS_FILE}'
        )
    return prompt.tokens - fixed
