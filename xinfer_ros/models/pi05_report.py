# SPDX-License-Identifier: Apache-2.0
"""What a π0.5 folder holds, for a person."""

from dataclasses import dataclass

import numpy as np
import torch

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import slot_memory_bytes
from xinfer_ros.models.folder import FolderReport
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.pi05_layout import Pi05Layout
from xinfer_ros.models.processor import Pi05Processor
from xinfer_ros.models.rtc import RtcMode, RtcOptions

_SLOTS_SHOWN = 32
_EXAMPLE = 'pick up the cube'


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


def pi05_report(found: Pi05Folder, dtype: torch.dtype) -> FolderReport:
    """
    Return what a folder holds.

    :param dtype: of the weights when it is served
    """
    parameters, state_bytes = num_parameters(found.config), request_bytes(found, dtype)
    weights, slots = parameters * dtype.itemsize, slot_memory_bytes(found.contract, _SLOTS_SHOWN)
    prompt, config = found.processor.state_prompt, found.config
    middle = found.layout.state.unnormalise(np.zeros(found.contract.action_dim))
    example = prompt.text(_EXAMPLE, middle)
    kind = str(dtype).removeprefix('torch.')
    facts = (
        ('files written by', found.layout.name),
        ('weights', f'{parameters:,} as {kind}, {_size(weights)}'),
        ('vision', _vision_words(config)),
        ('language model', _decoder_words(config.language)),
        ('action expert', f'{_decoder_words(config.expert)}; K = {config.num_steps}'),
        (
            'device memory',
            f'{_size(state_bytes)} a request under way, {_size(_SLOTS_SHOWN * state_bytes)} for '
            f'{_SLOTS_SHOWN}',
        ),
        ('shared memory', f'{_size(slots)} for {_SLOTS_SHOWN} slots'),
        ('real-time chunking', rtc_words(found.rtc, found.contract.max_commitment_steps)),
        (
            'tokenizer',
            f'{found.tokenizer}; {prompt.tokenizer.vocabulary} ids, the weights have '
            f'{config.vocabulary}; room for {prompt.tokens} tokens',
        ),
        ('state in the prompt', _state_words(found)),
        ('example of a prompt', f'{example!r}, {len(prompt.ids(_EXAMPLE, middle))} tokens'),
    )
    return FolderReport(
        family='π0.5',
        contract=found.contract,
        facts=facts,
        joints=tuple(_joint(found, joint) for joint in range(found.contract.action_dim)),
        warnings=found.warnings,
    )


def num_parameters(config: Pi05Config) -> int:
    """Return the number of weights."""
    with torch.device('meta'):
        return sum(weight.numel() for weight in Pi05(config).parameters())


def request_bytes(found: Pi05Folder, dtype: torch.dtype) -> int:
    """Return what a request keeps on the device between its stages: features and cache [bytes]."""
    config, language = found.config, found.config.language
    pictures = len(found.contract.cameras) * config.vision.num_tokens
    prefix = pictures + found.processor.prompt_tokens
    cache = language.layers * 2 * (prefix + config.horizon) * language.kv_width
    return (pictures * language.hidden + cache) * dtype.itemsize + prefix


def rtc_words(rtc: RtcOptions, max_commitment_steps: int) -> str:
    """Return how chunks are tied, in words."""
    limit = f'up to {max_commitment_steps} rows'
    if rtc.mode is RtcMode.HARD_PREFIX:
        return f'hard prefix, {limit}, as it was trained'
    if rtc.mode is RtcMode.NONE:
        return 'none; committed rows are taken over as they are'
    kind, schedule = rtc.jacobian.value, rtc.schedule.value
    return f'guided, {limit}, Jacobian {kind}, weights {schedule}, gain up to {rtc.max_gain:g}'


def _vision_words(config: Pi05Config) -> str:
    vision = config.vision
    return (
        f'{vision.layers} layers of width {vision.hidden}, {vision.heads} heads; '
        f'{vision.height}x{vision.width} in patches of {vision.patch}, {vision.num_tokens} tokens'
    )


def _decoder_words(config: object) -> str:
    return (
        '{layers} layers of width {hidden}, MLP {mlp}, {heads} heads of {head_dim}, {kv_heads} of '
        'keys'
    ).format(**{name: getattr(config, name) for name in _DECODER_SIZES})


_DECODER_SIZES = ('layers', 'hidden', 'mlp', 'heads', 'head_dim', 'kv_heads')


def _state_words(found: Pi05Folder) -> str:
    width = found.layout.state_width
    if width is None:
        return 'not told'
    return f'padded to {width} numbers' if width else 'as many numbers as joints'


def _joint(found: Pi05Folder, joint: int) -> tuple[str, str, str, str]:
    space = found.processor.action_space
    relative = space.relative is not None and bool(space.relative[joint])
    return (
        found.contract.joint_names[joint],
        found.layout.state.described(joint),
        space.statistics.described(joint),
        'relative' if relative else 'absolute',
    )


def _size(count: int) -> str:
    """Return bytes in words."""
    for unit, factor in (('GB', 1e9), ('MB', 1e6), ('kB', 1e3)):
        if count >= factor:
            return f'{count / factor:.3g} {unit}'
    return f'{count} B'
