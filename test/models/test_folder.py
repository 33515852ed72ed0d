# SPDX-License-Identifier: Apache-2.0
"""Folders of checkpoints: their architecture, sizes and contract, and what is refused."""

import logging
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.core.contract import CameraSpec
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.folder import family_of, read_settings
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05_folder import load
from xinfer_ros.models.pi05_layout import Pi05Settings

from .pi05_folders import (
    BEFORE,
    DIM,
    TINY,
    lerobot_folder,
    mend,
    read,
    set_config,
    set_step,
    write_settings,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in LeRobot's layout, free to be changed."""
    return lerobot_folder(tmp_path / 'folded')


def test_sizes_come_from_the_weights(folder: Path) -> None:
    config = read(folder).config
    assert (config.vision.patch, config.vision.hidden, config.vision.layers) == (28, 64, 2)
    assert (config.vision.mlp, config.vision.heads, config.vision.num_tokens) == (128, 4, 64)
    language, expert = config.language, config.expert
    assert (language.hidden, language.layers, language.mlp) == (64, 2, 128)
    assert (language.heads, language.kv_heads, language.head_dim) == (8, 1, 16)
    assert (expert.hidden, expert.mlp, expert.heads) == (32, 64, 8)
    assert (config.vocabulary, config.action_width, config.horizon) == (1024, 32, 16)
    assert (config.num_steps, config.joints) == (10, DIM)


def test_contract_comes_from_the_files(folder: Path) -> None:
    contract = read(folder).contract
    assert contract.name == 'folded'
    assert contract.cameras == tuple(
        CameraSpec(name=f'cam{index}', height=224, width=224) for index in range(3)
    )
    assert (contract.horizon, contract.max_commitment_steps) == (16, 8)
    assert contract.action_dim == DIM


def test_joints_without_names_are_numbered_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        model = load(folder, ModelOptions())
    assert model.contract.joint_names == tuple(f'joint_{index}' for index in range(DIM))
    assert 'no file names the 14 joints' in caplog.text


def test_joints_are_named_by_config_json(folder: Path) -> None:
    names = [f'motor_{index}.pos' for index in range(DIM)]
    set_config(folder, action_feature_names=names)
    found = read(folder)
    assert found.contract.joint_names == tuple(names)
    assert found.warnings == ()


def test_joints_are_named_by_the_owner_first(folder: Path) -> None:
    set_config(folder, action_feature_names=[f'motor_{index}' for index in range(DIM)])
    mine = [f'axis_{index}' for index in range(DIM)]
    write_settings(folder, **TINY, joint_names=mine)
    assert read(folder).contract.joint_names == tuple(mine)


@pytest.mark.parametrize('names', [['a'] * DIM, ['a', 'b'], [None] * DIM])
def test_names_that_are_not_one_for_each_joint_are_refused(
    folder: Path, names: list[str | None]
) -> None:
    write_settings(folder, **TINY, joint_names=names)
    with pytest.raises(ConfigError, match='14 different names are needed'):
        read(folder)


def test_robot_calls_cameras_as_it_did_before_they_were_renamed(folder: Path) -> None:
    renamed = {'observation.images.front': 'observation.images.cam1', 'observation.x': 'y'}
    set_step(folder, BEFORE, 'rename_observations_processor', rename_map=renamed)
    assert [camera.name for camera in read(folder).contract.cameras] == ['cam0', 'front', 'cam2']


def test_empty_cameras_are_not_asked_of_a_robot(folder: Path) -> None:
    def rename(found: dict[str, Any]) -> None:
        features = found['input_features']
        features['observation.images.empty_camera_0'] = features.pop('observation.images.cam2')
        found['empty_cameras'] = 1

    mend(folder / 'config.json', rename)
    model = load(folder, ModelOptions())
    assert [camera.name for camera in model.contract.cameras] == ['cam0', 'cam1']


def test_owner_may_name_cameras_and_leave_one_out(folder: Path) -> None:
    write_settings(folder, **TINY, cameras=['top', None, 'wrist'])
    assert [camera.name for camera in read(folder).contract.cameras] == ['top', 'wrist']


@pytest.mark.parametrize('cameras', [['top'], [None, None, None], ['a', 'a', 'b']])
def test_cameras_that_do_not_fit_the_model_are_refused(
    folder: Path, cameras: list[str | None]
) -> None:
    write_settings(folder, **TINY, cameras=cameras)
    with pytest.raises(ConfigError, match='cameras'):
        read(folder)


def test_state_of_other_joints_than_actions_is_refused(folder: Path) -> None:
    def widen(found: dict[str, Any]) -> None:
        found['input_features']['observation.state']['shape'] = [8]

    mend(folder / 'config.json', widen)
    with pytest.raises(ConfigError, match='state has 8 values and an action 14'):
        read(folder)


def test_picture_size_that_does_not_fit_the_weights_is_refused(folder: Path) -> None:
    set_config(folder, image_resolution=[224, 252])
    with pytest.raises(ConfigError, match=r'224x252 are 72 patches of 28, .* for 64'):
        read(folder)


def test_vision_heads_must_be_told_where_the_tower_is_not_the_published_one(folder: Path) -> None:
    write_settings(folder, tokenizer='bytes')
    with pytest.raises(ConfigError, match=r'"vision_heads": N.*xinfer\.json'):
        read(folder)


def test_key_heads_may_be_told(folder: Path) -> None:
    write_settings(folder, **TINY, kv_heads=2)
    language = read(folder).config.language
    assert (language.heads, language.kv_heads, language.head_dim) == (16, 2, 8)
    write_settings(folder, **TINY, kv_heads=3)
    with pytest.raises(ConfigError, match='kv_heads is 3'):
        read(folder)


@pytest.mark.parametrize('name', ['use_visual_memory', 'use_proprioceptive_memory'])
def test_memory_of_the_past_is_refused(folder: Path, name: str) -> None:
    set_config(folder, **{name: True})
    with pytest.raises(ConfigError, match=f'{name} is true'):
        read(folder)


@pytest.mark.parametrize(
    ('config', 'reason'),
    [
        ({'type': 'act'}, "type is 'act'; served are folders of type .*pi05"),
        ({'action_dim': 32}, 'type is None'),
    ],
)
def test_unknown_architecture_is_refused(
    folder: Path, config: dict[str, Any], reason: str
) -> None:
    mend(folder / 'config.json', lambda found: (found.clear(), found.update(config)))
    with pytest.raises(ConfigError, match=reason):
        family_of(folder)


@pytest.mark.parametrize('text', ['{', '[1]'])
def test_malformed_config_is_named(folder: Path, text: str) -> None:
    (folder / 'config.json').write_text(text)
    with pytest.raises(ConfigError, match=r'config\.json'):
        family_of(folder)


@pytest.mark.parametrize(
    ('settings', 'reason'),
    [
        (
            {'vision_head': 4},
            r'xinfer\.json: unknown key vision_head; did you mean vision_heads\?',
        ),
        ({'vision_heads': '4'}, "vision_heads is '4'; allowed: a whole number above 0"),
        ({'vision_heads': 0}, 'vision_heads is 0'),
        ({'vision_heads': True}, 'vision_heads is True'),
        ({'state_prompt': 'wide'}, "'wide'; allowed: unpadded or padded or absent"),
        ({'joint_names': 'a'}, "joint_names is 'a'; allowed: a list of text"),
        ({'cameras': [1]}, 'cameras is'),
        ({'relative_actions': 'yes'}, 'allowed: true or false'),
    ],
)
def test_settings_of_the_owner_are_checked(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    write_settings(tmp_path, **settings)
    with pytest.raises(ConfigError, match=reason):
        read_settings(tmp_path, Pi05Settings)


def test_settings_may_be_absent(tmp_path: Path) -> None:
    assert read_settings(tmp_path, Pi05Settings) == Pi05Settings()
