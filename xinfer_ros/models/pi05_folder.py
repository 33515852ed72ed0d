# SPDX-License-Identifier: Apache-2.0
"""π0.5 from a folder: a contract, sizes and a processor from its files, then the weights."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.slot import slot_memory_bytes
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
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.pi05_layout import Pi05Layout, Pi05Settings
from xinfer_ros.models.pi05_lerobot import read_lerobot
from xinfer_ros.models.pi05_openpi import read_openpi
from xinfer_ros.models.pi05_sizes import Untold, inferred_config
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions, resolved_rtc
from xinfer_ros.models.staged import ServingOptions, StagedPi05
from xinfer_ros.models.tokenizer import ByteTokenizer, Tokenizer, longest_state_prompt_bytes
from xinfer_ros.models.tokenizer_files import folder_tokenizer
from xinfer_ros.models.weight_files import WeightFiles

_PUBLISHED_TOKENIZER = 'google/paligemma-3b-pt-224'
_INSTRUCTION_BYTES = 400
_SLOTS_SHOWN = 32
_EXAMPLE = 'pick up the cube'

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi05Folder:
    """
    Everything that a folder says but its weights.

    :param layout: what its files say
    :param config: sizes of the model
    :param contract: what crosses the border between robot and server
    :param processor: between robot units and model space
    :param rtc: how chunks are tied, with a mode
    :param tokenizer: where the tokenizer was found
    :param warnings: what had to be assumed
    """

    layout: Pi05Layout
    config: Pi05Config
    contract: ModelContract
    processor: Pi05Processor
    rtc: RtcOptions
    tokenizer: str
    warnings: tuple[str, ...]


def load(folder: Path, options: ModelOptions, progress: Progress | None = None) -> StagedPi05:
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
    return StagedPi05(
        found.contract,
        model,
        ServingOptions(
            processor=found.processor,
            rtc=found.rtc,
            capture=device.type == 'cuda' and found.rtc.jacobian is Jacobian.IDENTITY,
        ),
    )


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
    tokenizer, where = _tokenizer(folder, layout, settings)
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
    return Pi05Folder(
        layout=layout,
        config=config,
        contract=ModelContract(
            name=folder.name,
            cameras=_cameras(folder, layout, settings),
            joint_names=joints,
            horizon=config.horizon,
            max_commitment_steps=_max_commitment(layout, rtc),
            max_instruction_bytes=_instruction_bytes(folder, prompt, layout),
        ),
        processor=Pi05Processor(state_prompt=prompt, action_space=layout.action_space),
        rtc=rtc,
        tokenizer=where,
        warnings=(*layout.warnings, *assumed),
    )


def report(folder: Path, options: ModelOptions) -> FolderReport:
    """Return what a folder holds, without reading its weights."""
    found = read_folder(folder, options)
    width = 2 if chosen_dtype(options.dtype, chosen_device(options.device)).itemsize == 2 else 4
    with torch.device('meta'):
        parameters = sum(weight.numel() for weight in Pi05(found.config).parameters())
    state_bytes = _state_bytes(found, width)
    slots = slot_memory_bytes(found.contract, _SLOTS_SHOWN)
    prompt = found.processor.state_prompt
    zero = np.zeros(found.contract.action_dim, np.float32)
    facts = (
        ('weights', f'{parameters:,} of {8 * width} bits, {_size(parameters * width)}'),
        ('a request on the device', f'{_size(state_bytes)}, {_SLOTS_SHOWN} of them '
         f'{_size(_SLOTS_SHOWN * state_bytes)}'),
        (f'{_SLOTS_SHOWN} slots of shared memory', _size(slots)),
        ('Euler steps', str(found.config.num_steps)),
        ('real-time chunking', _rtc_words(found)),
        ('tokenizer', f'{found.tokenizer}, {prompt.tokenizer.vocabulary} ids, room for '
         f'{prompt.tokens} tokens'),
        ('prompt of an example', repr(prompt.text(_EXAMPLE, zero))),
        ('its tokens', str(len(prompt.ids(_EXAMPLE, zero)))),
    )  # fmt: skip
    return FolderReport(
        family='π0.5',
        layout=found.layout.name,
        contract=found.contract,
        parameters=parameters,
        state_bytes=state_bytes,
        facts=facts,
        joints=_joint_rows(found),
        warnings=found.warnings,
    )
