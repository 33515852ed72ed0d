# SPDX-License-Identifier: Apache-2.0
"""A folder with π0.5 weights in the published layout, read strictly."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from xinfer_ros.errors import ModelError
from xinfer_ros.models.pi05 import Pi05, Pi05Config

_FILE = 'model.safetensors'
_OPTIONAL_PREFIX = 'model.'
_PALIGEMMA = 'paligemma_with_expert.paligemma.'
_EXPERT = 'paligemma_with_expert.gemma_expert.'
_EMBEDDING = 'language.embed_tokens.weight'
_TIED_HEAD = _PALIGEMMA + 'lm_head.weight'
# Present in published files though π0.5 never predicts a token.
_UNUSED = (_TIED_HEAD, _EXPERT + 'lm_head.weight')
_PUBLISHED = {
    'vision.': _PALIGEMMA + 'model.vision_tower.vision_model.',
    'projector.': _PALIGEMMA + 'model.multi_modal_projector.linear.',
    'language.': _PALIGEMMA + 'model.language_model.',
    'expert.': _EXPERT + 'model.',
}
_SHOWN = 8


def published_name(name: str) -> str:
    """Return the name that published files give to the parameter ``name`` of ``Pi05``."""
    for ours, theirs in _PUBLISHED.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def load_pi05(
    folder: Path,
    config: Pi05Config,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
) -> Pi05:
    """
    Return the model of a folder, ready to run.

    :param folder: holds ``model.safetensors``
    :param config: the sizes that the weights must have
    :param device: where the model shall live
    :param dtype: what the weights are converted to
    :raises ModelError: if the file is absent or unreadable, or a weight is missing, surplus or of
        another shape; the text names it
    """
    path = folder / _FILE
    if not path.is_file():
        raise ModelError(f'{path} does not exist; the folder of a π0.5 checkpoint has that file')
    try:
        stored = load_file(path, device=str(device))
    except Exception as error:  # safetensors raises types of its own that it does not export
        raise ModelError(f'{path} is not a readable safetensors file: {error}') from error
    with torch.device('meta'):
        model = Pi05(config)
    weights = _matched(_without_prefix(stored), model.state_dict(), path)
    converted = {name: weight.to(dtype) for name, weight in weights.items()}
    model.load_state_dict(converted, strict=True, assign=True)
    model.requires_grad_(False).eval()
    model.fix_times()
    return model


def _without_prefix(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights without ``model.``, which some writers put before every name."""
    if all(name.startswith(_OPTIONAL_PREFIX) for name in stored):
        return {name.removeprefix(_OPTIONAL_PREFIX): stored[name] for name in stored}
    return dict(stored)


def _matched(
    stored: dict[str, Tensor], wanted: Mapping[str, Tensor], path: Path
) -> dict[str, Tensor]:
    """Return the stored weights under our names, or raise with every name that does not fit."""
    if published_name(_EMBEDDING) not in stored and _TIED_HEAD in stored:
        stored = {**stored, published_name(_EMBEDDING): stored[_TIED_HEAD]}
    published = {published_name(name): name for name in wanted}
    problems = [f'missing {name}' for name in published if name not in stored]
    for name, weight in stored.items():
        if name in _UNUSED:
            continue
        if name not in published:
            problems.append(f'surplus {name}')
        elif weight.shape != wanted[published[name]].shape:
            expected = tuple(wanted[published[name]].shape)
            problems.append(f'{name} has shape {tuple(weight.shape)}, expected {expected}')
    if problems:
        more = f'; and {len(problems) - _SHOWN} more' if len(problems) > _SHOWN else ''
        raise ModelError(f'{path}: {"; ".join(problems[:_SHOWN])}{more}')
    return {ours: stored[name] for name, ours in published.items()}
