# SPDX-License-Identifier: Apache-2.0
"""A π0.5 folder in the layout of openpi."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05_folder import load

from .pi05_folders import (
    TINY,
    mend,
    openpi_folder,
    read,
    write_settings,
)


def test_openpi_folder_isread(tmp_path: Path) -> None:
    folder = openpi_folder(tmp_path / 'towels')
    model = load(folder, ModelOptions())
    contract = model.contract
    assert [camera.name for camera in contract.cameras] == [
        'base_0_rgb', 'left_wrist_0_rgb', 'right_wrist_0_rgb',
    ]  # fmt: skip
    assert (contract.horizon, contract.action_dim) == (16, 7)
    # openpi adds 1e-6 to the span
    found = read(folder).layout.state.normalise(np.full(7, 1.0, np.float32))
    assert found[0] == pytest.approx(2.0 * 2.0 / (2.0 + 1e-6) - 1.0, abs=1e-7)


def test_openpi_does_not_tell_whether_actions_are_relative(tmp_path: Path) -> None:
    folder = openpi_folder(tmp_path / 'towels')
    write_settings(folder, **TINY)
    assert any('relative_actions' in warning for warning in read(folder).warnings)
    names = ['a', 'b', 'c', 'd', 'e', 'f', 'gripper']
    write_settings(
        folder, **TINY, joint_names=names, relative_actions=True, absolute_joints=['gripper']
    )
    found = read(folder)
    assert found.warnings == ()
    relative = found.processor.action_space.relative
    assert relative is not None
    assert relative.tolist() == [True] * 6 + [False]


def test_joint_names_select_the_first_statistics(tmp_path: Path) -> None:
    """Statistics of openpi may be padded to the width of the model."""
    folder = openpi_folder(tmp_path / 'towels')
    write_settings(folder, **TINY, joint_names=['a', 'b'])
    found = read(folder)
    assert (found.contract.joint_names, found.layout.state.dim) == (('a', 'b'), 2)
    write_settings(folder, **TINY, joint_names=list('abcdefgh'))
    with pytest.raises(ConfigError, match='statistics of 7 values of the state and 7'):
        read(folder)


def test_one_of_several_data_sets_must_be_chosen(tmp_path: Path) -> None:
    folder = openpi_folder(tmp_path / 'both', data_sets=('cups', 'lab/towels'))
    with pytest.raises(ConfigError, match='statistics of cups, lab/towels; write norm_stats'):
        read(folder)
    write_settings(folder, **TINY, norm_stats='lab/towels')
    assert read(folder).layout.state.normalise(np.full(7, 2.0))[0] == pytest.approx(1.0, abs=1e-5)


def test_openpi_folder_without_statistics_is_refused(tmp_path: Path) -> None:
    folder = openpi_folder(tmp_path / 'none', data_sets=())
    with pytest.raises(ConfigError, match=r'has no <data set>/norm_stats\.json'):
        load(folder, ModelOptions())


def test_statistics_without_quantiles_are_refused(tmp_path: Path) -> None:
    folder = openpi_folder(tmp_path / 'towels')

    def drop(found: dict[str, Any]) -> None:
        found['norm_stats']['actions']['q99'] = None

    mend(folder / 'assets' / 'towels' / 'norm_stats.json', drop)
    with pytest.raises(ConfigError, match='actions has no q01 and q99'):
        read(folder)


def test_weights_of_pi0_are_refused_by_name(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = openpi_folder(tmp_path / 'pi0')
    weights = load_file(folder / 'model.safetensors')
    weights['state_proj.weight'] = np.zeros((2, 2), np.float32)
    save_file(weights, folder / 'model.safetensors')
    with pytest.raises(ConfigError, match=r'weights of π0; this version serves π0\.5'):
        read(folder)


@pytest.mark.parametrize(
    ('told', 'prompt'),
    [
        ('unpadded', f'Task: x, State: {" ".join(["128"] * 7)};\nAction: '),
        ('padded', f'Task: x, State: {" ".join(["128"] * 32)};\nAction: '),
        ('absent', 'x\n'),
    ],
)
def test_owner_says_how_the_state_is_told(tmp_path: Path, told: str, prompt: str) -> None:
    folder = openpi_folder(tmp_path / 'towels')
    write_settings(folder, **TINY, state_prompt=told)
    found = read(folder).processor.state_prompt
    # a little above the middle: openpi's margin puts the middle itself a little below
    assert found.text('x', np.full(7, 0.004, np.float32)) == prompt
