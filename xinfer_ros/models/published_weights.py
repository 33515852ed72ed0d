# SPDX-License-Identifier: Apache-2.0
"""Weights of a folder in a published layout, matched strictly to a model's own names."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from xinfer_ros.errors import ModelError

_FILE = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'
_SHOWN = 8

Weights = dict[str, Tensor]


def read_json(path: Path) -> dict[str, Any]:
    """
    Return the object of a JSON file.

    :raises ModelError: if the file is absent, unreadable or holds something else
    """
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ModelError(f'{path} is not a readable JSON file: {error}') from error
    if not isinstance(found, dict):
        raise ModelError(f'{path} holds {type(found).__name__}, expected an object')
    return found


def read_weights(folder: Path, device: torch.device | str = 'cpu') -> Weights:
    """
    Return all weights of a folder, from one file or from the parts that an index names.

    :raises ModelError: if a file is absent or unreadable
    """
    if (folder / _FILE).is_file():
        return _read_part(folder / _FILE, device)
    if not (folder / _INDEX).is_file():
        raise ModelError(f'{folder} holds neither {_FILE} nor {_INDEX}')
    parts = read_json(folder / _INDEX).get('weight_map')
    if not isinstance(parts, dict):
        raise ModelError(f'{folder / _INDEX} has no weight_map')
    weights: Weights = {}
    for part in sorted(set(parts.values())):
        if Path(part).name != part:
            raise ModelError(f'{folder / _INDEX} names {part!r}, expected a file of the folder')
        weights.update(_read_part(folder / part, device))
    return weights


def _read_part(path: Path, device: torch.device | str) -> Weights:
    try:
        return load_file(path, device=str(device))
    except Exception as error:  # safetensors raises types of its own that it does not export
        raise ModelError(f'{path} is not a readable safetensors file: {error}') from error


def matched(
    stored: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    published: Callable[[str], str],
    *,
    unused: Collection[str] = (),
    source: Path,
) -> Weights:
    """
    Return the stored weights under the model's own names.

    :param stored: by published name
    :param wanted: a weight of the right shape for each own name
    :param published: gives the published name of an own one; several may share one
    :param unused: published names that may be stored though nothing reads them
    :param source: for error texts
    :raises ModelError: if a weight is missing, surplus or of another shape; the text names it
    """
    names = {name: published(name) for name in wanted}
    known = {*names.values(), *unused}
    problems = [f'missing {name}' for name in dict.fromkeys(names.values()) if name not in stored]
    problems += [f'surplus {name}' for name in stored if name not in known]
    for ours, theirs in names.items():
        expected = tuple(wanted[ours].shape)
        if theirs in stored and tuple(stored[theirs].shape) != expected:
            found = tuple(stored[theirs].shape)
            problems.append(f'{theirs} has shape {found}, expected {expected}')
    if problems:
        more = f'; and {len(problems) - _SHOWN} more' if len(problems) > _SHOWN else ''
        raise ModelError(f'{source}: {"; ".join(problems[:_SHOWN])}{more}')
    return {ours: stored[theirs] for ours, theirs in names.items()}


def renamed(name: str, prefixes: Mapping[str, str]) -> str:
    """Return ``name`` with the first prefix that fits replaced."""
    for ours, theirs in prefixes.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def count_layers(stored: Mapping[str, Tensor], prefix: str) -> int:
    """Return how many numbered layers there are behind a published prefix."""
    heads = {name.removeprefix(prefix).split('.')[0] for name in stored if name.startswith(prefix)}
    return len({head for head in heads if head.isdigit()})
