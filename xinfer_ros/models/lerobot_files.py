# SPDX-License-Identifier: Apache-2.0
"""The processors' files that LeRobot lays beside a checkpoint: steps and their statistics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.folder import read_object
from xinfer_ros.models.normalise import (
    MeanStdStatistics,
    NoStatistics,
    QuantileStatistics,
    Statistics,
)

STATE, ACTION = 'observation.state', 'action'
_IMAGES, _OBSERVATION = 'observation.images.', 'observation.'
_EMPTY_CAMERA = _IMAGES + 'empty_camera_'
# Which two statistics become -1 and 1
_RANGES = {'QUANTILES': ('q01', 'q99'), 'QUANTILE10': ('q10', 'q90'), 'MIN_MAX': ('min', 'max')}
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One step of a processor.

    :param config: its settings
    :param state_file: where its arrays are, None if it has none
    :param artifacts: paths of what was stored for it, by setting
    """

    config: Mapping[str, Any]
    state_file: Path | None
    artifacts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """
    The steps of a processor by registered name.

    :param path: the file, for error texts
    :param by_name: the steps
    """

    path: Path
    by_name: Mapping[str, Step]

    def config(self, name: str) -> Mapping[str, Any]:
        """Return the settings of a step, empty if it is not there."""
        return self.by_name[name].config if name in self.by_name else {}

    def statistics(self, step: str, feature: str) -> Statistics:
        """
        Return what a step normalises a feature by.

        :param step: a normaliser or its inverse
        :param feature: ``observation.state`` or ``action``
        :raises ConfigError: if they are missing: a model that is fed raw numbers moves a robot at
            random
        """
        if step not in self.by_name:
            raise ConfigError(f'{self.path} has no step {step}, so there are no statistics')
        config = self.by_name[step].config
        described = config.get('features', {}).get(feature, {})
        mode = config.get('norm_map', {}).get(described.get('type'), 'IDENTITY')
        if mode == 'IDENTITY':
            return NoStatistics(dim=_dim(described, feature, self.path))
        arrays = self._arrays(step)
        names = ('mean', 'std') if mode == 'MEAN_STD' else _RANGES.get(mode)
        if names is None:
            raise ConfigError(
                f'{self.path}: {feature} is normalised by {mode}; known are IDENTITY, MEAN_STD, '
                f'{", ".join(_RANGES)}'
            )
        missing = [name for name in names if f'{feature}.{name}' not in arrays]
        if missing:
            raise ConfigError(
                f'{self.path}: {feature} is normalised by {mode}, but there is no {missing[0]} of '
                f'it{self._where(step)}; save the checkpoint with the statistics of its data set'
            )
        first, second = (arrays[f'{feature}.{name}'].reshape(-1) for name in names)
        try:
            if mode == 'MEAN_STD':
                return MeanStdStatistics(
                    mean=first, std=second, margin=float(config.get('eps', _EPSILON))
                )
            return QuantileStatistics(q01=first, q99=second)
        except ValueError as error:
            raise ConfigError(f'{self.path}: {feature}: {error}') from error

    def _where(self, step: str) -> str:
        file = self.by_name[step].state_file
        return '' if file is None else f' in {file.name}'

    def _arrays(self, step: str) -> dict[str, npt.NDArray[np.floating]]:
        file = self.by_name[step].state_file
        if file is None:
            return {}
        try:
            return load_file(file)
        except (OSError, SafetensorError) as error:
            raise ConfigError(f'{file} is no readable safetensors file: {error}') from error


def read_steps(path: Path, known: Collection[str]) -> Steps:
    """
    Return the steps of a processor's file.

    :param known: names of steps that are understood; another one would be left out in silence
    :raises ConfigError: if the file is absent or malformed, or has another step
    """
    found = read_object(path).get('steps')
    if not isinstance(found, list) or not all(isinstance(step, dict) for step in found):
        raise ConfigError(f'{path}: steps must be a list of objects')
    steps = {}
    for entry in found:
        name = entry.get('registry_name') or entry.get('class')
        if name not in known:
            raise ConfigError(
                f'{path}: step {name!r} is unknown, and leaving it out would change what the '
                f'model sees; known are {", ".join(sorted(known))}'
            )
        file = entry.get('state_file')
        if file is not None and Path(file).name != file:
            raise ConfigError(f'{path}: state_file {file!r} must lie in the same folder')
        steps[name] = Step(
            config=entry.get('config', {}),
            state_file=None if file is None else path.with_name(file),
            artifacts=entry.get('artifacts', {}),
        )
    return Steps(path=path, by_name=steps)


def feature_dim(features: Mapping[str, Any], feature: str, path: Path) -> int:
    """
    Return the width of a feature.

    :param features: ``input_features`` or ``output_features`` of a config.json
    :raises ConfigError: if it is not there
    """
    return _dim(features.get(feature, {}), feature, path)


def camera_names(features: Mapping[str, Any], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """
    Return the robot's names of the cameras, in the model's order.

    LeRobot's empty cameras are left out: nothing attends to them, and they do not move the
    positions of what follows.

    :param features: ``input_features`` of a config.json
    :param renamed: what the robot calls a feature, to what the model calls it
    """
    robots = {theirs: ours for ours, theirs in renamed.items()}
    pictures = [
        robots.get(name, name)
        for name, feature in features.items()
        if feature.get('type') == 'VISUAL' and not name.startswith(_EMPTY_CAMERA)
    ]
    return tuple(name.removeprefix(_IMAGES).removeprefix(_OBSERVATION) for name in pictures)


def _dim(described: Mapping[str, Any], feature: str, path: Path) -> int:
    shape = described.get('shape')
    if not isinstance(shape, list) or len(shape) != 1 or not isinstance(shape[0], int):
        raise ConfigError(f'{path}: {feature} must have a shape of one number, it has {shape!r}')
    return shape[0]
