# SPDX-License-Identifier: Apache-2.0
"""The safetensors files of a folder: what they hold, without reading it, and one weight each."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from xinfer_ros.errors import ModelError

_FILE = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'
_OPTIONAL_PREFIX = 'model.'

Shape = tuple[int, ...]


class WeightFiles:
    """
    The weights of a folder, in one file or in the parts that an index names.

    Names are without ``model.``, which some writers put before every one.

    :param folder: holds ``model.safetensors``, or an index and its parts
    :raises ModelError: if a file is absent or unreadable
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored: dict[str, tuple[Path, str]] = {}
        self.shapes: dict[str, Shape] = {}
        found: dict[str, tuple[Path, Shape]] = {}
        for path in _parts(folder):
            found.update({name: (path, shape) for name, shape in _header(path)})
        cut = len(_OPTIONAL_PREFIX) if all(n.startswith(_OPTIONAL_PREFIX) for n in found) else 0
        for name, (path, shape) in found.items():
            self._stored[name[cut:]] = (path, name)
            self.shapes[name[cut:]] = shape

    def network(self, num_steps: int) -> str:
        """
        Return in words what decides about the times of the model, for its contract.

        :param num_steps: Euler steps of a chunk, ``K``
        """
        count = sum(math.prod(shape) for shape in self.shapes.values())
        return f'{count} weights, {num_steps} flow steps'

    def read(
        self, names: Iterable[str], device: torch.device | str = 'cpu'
    ) -> Iterator[tuple[str, Tensor]]:
        """
        Return weights one after the other, so that no more than one is held twice.

        :param names: of weights that are there
        :param device: where they shall live
        :raises ModelError: if a file has changed or is damaged
        """
        by_path: dict[Path, list[str]] = {}
        for name in names:
            by_path.setdefault(self._stored[name][0], []).append(name)
        for path, wanted in by_path.items():
            with _opened(path, device) as file:
                for name in wanted:
                    yield name, _tensor(file, path, self._stored[name][1])


def expect_shapes(
    stored: Mapping[str, Shape],
    wanted: Mapping[str, Shape],
    *,
    unused: Iterable[str] = (),
    source: Path,
    shown: int = 8,
) -> None:
    """
    Compare what is stored with what a model needs.

    :param unused: names that may be stored though nothing reads them
    :param source: for the error text
    :raises ModelError: with the names of missing, surplus and misshaped weights
    """
    problems = [f'missing {name}' for name in wanted if name not in stored]
    allowed = {*wanted, *unused}
    problems += [f'surplus {name}' for name in stored if name not in allowed]
    problems += [
        f'{name} has shape {stored[name]}, expected {shape}'
        for name, shape in wanted.items()
        if name in stored and stored[name] != shape
    ]
    if problems:
        more = f'; and {len(problems) - shown} more' if len(problems) > shown else ''
        raise ModelError(f'{source}: {"; ".join(problems[:shown])}{more}')


def _parts(folder: Path) -> list[Path]:
    if (folder / _FILE).is_file():
        return [folder / _FILE]
    index = folder / _INDEX
    if not index.is_file():
        raise ModelError(
            f'{folder / _FILE} does not exist, nor does {_INDEX}; the folder of a checkpoint has '
            'one of them'
        )
    try:
        names = sorted(set(json.loads(index.read_text())['weight_map'].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f'{index} is not a readable index of weights: {error!r}') from error
    if outside := [name for name in names if Path(str(name)).name != name]:
        raise ModelError(f'{index} names {outside[0]!r}; a part lies in the folder itself')
    return [folder / name for name in names]


def _opened(path: Path, device: torch.device | str) -> Any:
    try:
        return safe_open(path, framework='pt', device=str(device))
    except Exception as error:  # safetensors raises types of its own that it does not export
        raise ModelError(f'{path} is not a readable safetensors file: {error}') from error


def _header(path: Path) -> list[tuple[str, Shape]]:
    with _opened(path, 'cpu') as file:
        return [(name, tuple(file.get_slice(name).get_shape())) for name in file.keys()]  # noqa: SIM118


def _tensor(file: Any, path: Path, name: str) -> Tensor:
    try:
        found: Tensor = file.get_tensor(name)
    except Exception as error:
        raise ModelError(f'{path}: {name} can not be read: {error}') from error
    if not found.is_floating_point():
        raise ModelError(f'{path}: {name} holds {found.dtype}; floating point is needed')
    if not torch.isfinite(found).all():
        raise ModelError(f'{path}: {name} holds values that are not finite')
    return found
