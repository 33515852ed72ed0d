# SPDX-License-Identifier: Apache-2.0
"""A π0.5 folder as openpi's conversion to PyTorch writes it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.actions import ActionSpace, relative_joints
from xinfer_ros.models.folder import CONFIG_FILE, SETTINGS_FILE, read_object
from xinfer_ros.models.normalise import QuantileStatistics
from xinfer_ros.models.pi05_layout import (
    NUM_STEPS,
    PROMPT_TOKENS,
    STATE_WIDTH,
    UNPADDED,
    Pi05Layout,
    Pi05Settings,
    told_width,
)

CAMERAS = ('base_0_rgb', 'left_wrist_0_rgb', 'right_wrist_0_rgb')
_PICTURE = 224
_MARGIN = 1e-6
_STATISTICS = 'norm_stats.json'


def read_openpi(folder: Path, config: Mapping[str, Any], settings: Pi05Settings) -> Pi05Layout:
    """
    Return what the files say.

    openpi keeps in its training configuration, not in the folder, which robot it is and whether
    actions are relative: the owner tells that.

    :param config: of config.json
    :param settings: what the owner adds
    :raises ConfigError: if a file is missing or says something that can not be served
    """
    horizon = config.get('action_horizon')
    if type(horizon) is not int or horizon < 1:
        raise ConfigError(
            f'{folder / CONFIG_FILE}: action_horizon is {horizon!r}; allowed: a whole number'
        )
    path = _statistics_file(folder, settings)
    found = read_object(path).get('norm_stats')
    if not isinstance(found, dict):
        raise ConfigError(f'{path}: norm_stats must be an object')
    state, actions = (_quantiles(found, name, path) for name in ('state', 'actions'))
    dim = len(settings.joint_names) if settings.joint_names is not None else actions.dim
    if dim > actions.dim or dim > state.dim or (settings.joint_names is None and state.dim != dim):
        raise ConfigError(
            f'{path} has statistics of {state.dim} values of the state and {actions.dim} of an '
            f'action; write joint_names into {folder / SETTINGS_FILE}, one for each of the first '
            'values that both have'
        )
    return Pi05Layout(
        name='openpi',
        horizon=horizon,
        num_steps=NUM_STEPS,
        height=_PICTURE,
        width=_PICTURE,
        cameras=CAMERAS,
        joint_names=None,
        state=state.selected(dim),
        action_space=ActionSpace(
            statistics=actions.selected(dim), relative=_relative(settings, dim)
        ),
        state_width=told_width(settings.state_prompt or UNPADDED, STATE_WIDTH),
        prompt_tokens=PROMPT_TOKENS,
        warnings=_warnings(settings),
    )


def _relative(settings: Pi05Settings, dim: int) -> npt.NDArray[np.bool_] | None:
    if not settings.relative_actions:
        return None
    return relative_joints(settings.joint_names, settings.absolute_joints or (), dim)


def _warnings(settings: Pi05Settings) -> tuple[str, ...]:
    if settings.relative_actions is not None:
        return ()
    return (
        'openpi does not say whether actions are relative to the state; absolute is assumed, '
        f'write relative_actions, and absolute_joints such as grippers, into {SETTINGS_FILE}',
    )


def _statistics_file(folder: Path, settings: Pi05Settings) -> Path:
    assets = folder / 'assets'
    known = sorted(str(path.parent.relative_to(assets)) for path in assets.rglob(_STATISTICS))
    if not known:
        raise ConfigError(
            f'{assets} has no <data set>/{_STATISTICS}; without statistics the model would get '
            'raw numbers, copy assets/ from the original checkpoint'
        )
    wanted = settings.norm_stats
    if wanted is None and len(known) == 1:
        wanted = known[0]
    if wanted not in known:
        raise ConfigError(
            f'{assets} has statistics of {", ".join(known)}; write norm_stats, one of them, into '
            f'{folder / SETTINGS_FILE}' + ('' if wanted is None else f' instead of {wanted}')
        )
    return assets / wanted / _STATISTICS


def _quantiles(found: Mapping[str, Any], name: str, path: Path) -> QuantileStatistics:
    entry = found.get(name)
    entry = entry if isinstance(entry, dict) else {}
    if entry.get('q01') is None or entry.get('q99') is None:
        raise ConfigError(f'{path}: {name} has no q01 and q99, by which π0.5 is normalised')
    try:
        low, high = (np.asarray(entry[key], np.float64) for key in ('q01', 'q99'))
        return QuantileStatistics(q01=low, q99=high, margin=_MARGIN)
    except (TypeError, ValueError) as error:
        raise ConfigError(f'{path}: {name}: {error}') from error
