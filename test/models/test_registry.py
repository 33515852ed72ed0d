# SPDX-License-Identifier: Apache-2.0
"""Models by name, and what their import costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from xinfer_ros.config import MODEL_NAMES, ServerConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.random_families import random_family_names
from xinfer_ros.models.registry import RANDOM_FAMILIES, echo_contract, make_model, model_names

from .pi05_folders import lerobot_folder


def test_settings_know_the_names_of_models() -> None:
    assert set(MODEL_NAMES) == set(model_names())
    assert random_family_names() == RANDOM_FAMILIES


# those of published sizes take gigabytes
@pytest.mark.parametrize('name', [name for name in model_names() if 'random' not in name])
def test_every_known_name_makes_a_model_of_that_name(name: str) -> None:
    assert make_model(name).contract.name == name


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="model 'pi0' is unknown; known are tiny, echo"):
        make_model('pi0')


@pytest.mark.parametrize(('name', 'meant'), [('tinny', 'tiny'), ('ecko', 'echo')])
def test_unknown_name_is_refused_with_the_nearest_one(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf'did you mean {meant}\? .* folder of a checkpoint'):
        make_model(name)


@pytest.mark.parametrize('name', ['/nowhere/folded', './folded', '~/folded'])
def test_path_that_is_no_folder_is_refused_as_a_folder(name: str) -> None:
    with pytest.raises(ConfigError, match=r'the folder .*/folded does not exist'):
        make_model(name)


def test_folder_is_told_from_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is known is never looked for among files; any other may be one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'tiny').mkdir()
    assert make_model('tiny').contract.name == 'tiny'
    lerobot_folder(tmp_path / 'folded')
    assert make_model('folded').contract.name == 'folded'
    with pytest.raises(ConfigError, match='contract of its own'):
        make_model('folded', contract=echo_contract())


def test_spare_engine_has_the_code_of_a_folder_before_it_is_made(tmp_path: Path) -> None:
    folder = lerobot_folder(tmp_path / 'folded')
    code = (
        'import sys\n'
        'from xinfer_ros.models.registry import preload\n'
        f"preload('/nowhere')\n"
        f'preload({str(folder)!r})\n'
        "sys.exit('xinfer_ros.models.pi05_folder' not in sys.modules)"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


def test_echo_takes_any_contract_and_tiny_takes_none() -> None:
    assert make_model('echo', contract=echo_contract()).contract == echo_contract()
    with pytest.raises(ConfigError, match='contract of its own'):
        make_model('tiny', contract=echo_contract())


def test_echo_serves_the_robot_that_the_settings_describe() -> None:
    config = ServerConfig(model='echo', echo_joints=('pan', 'tilt'), echo_cameras=('front',))
    contract = make_model('echo', ModelOptions.from_config(config)).contract
    assert contract.joint_names == ('pan', 'tilt')
    assert [camera.name for camera in contract.cameras] == ['front']
    assert contract.horizon == echo_contract().horizon


def test_front_end_gets_pictures_and_echo_without_torch() -> None:
    code = (
        'import sys, xinfer_ros.models.images\n'
        'from xinfer_ros.models.registry import make_model\n'
        "make_model('echo')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
