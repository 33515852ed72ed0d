# SPDX-License-Identifier: Apache-2.0
"""The command xinfer models: what it lists, shows and checks."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from xinfer_ros.cli import main
from xinfer_ros.models.catalogue import catalogue
from xinfer_ros.models.folder import FAMILIES
from xinfer_ros.models.pi05 import published_config
from xinfer_ros.models.pi05_report import num_parameters
from xinfer_ros.models.registry import model_names
from xinfer_ros.models.tiny import tiny_config

STORED = Path(__file__).parents[1] / 'data' / 'pi05_tiny'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the checkpoint with known answers."""
    path = tmp_path / 'folded'
    shutil.copytree(STORED, path)
    return path


def test_list_names_every_kind_of_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['models']) == 0
    printed = capsys.readouterr().out
    listed = ' '.join(entry.name for entry in catalogue())
    for name in (*model_names(), *FAMILIES, 'python:'):
        assert name in listed
    assert 'xinfer models show DIR' in printed


def test_listed_sizes_are_those_of_the_models() -> None:
    sizes = {entry.name: entry.sizes for entry in catalogue()}
    published = num_parameters(published_config()) / 1e9
    assert f'{published:.2f} G weights' in sizes['FOLDER of type pi05, or of openpi']
    assert f'{num_parameters(tiny_config()) / 1e6:.2f} M weights' in sizes['tiny']


def test_show_tells_what_a_folder_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['models', 'show', str(folder)]) == 0
    printed = capsys.readouterr().out
    for part in (
        'cam0 224x224, cam1 224x224, cam2 224x224',
        '16 rows',
        '428,576 as float32, 1.71 MB',
        'guided, up to 8 rows, Jacobian identity',
        'Task: pick up the cube, State: 128',
        '-2 becomes -1, 2 becomes 1',
        'assumed: no file names the 14 joints',
    ):
        assert part in printed


def test_show_reads_no_weights(folder: Path) -> None:
    """Only the head of the file is looked at, so a checkpoint of gigabytes is shown at once."""
    path = folder / 'model.safetensors'
    head = 8 + int.from_bytes(path.read_bytes()[:8], 'little')
    size = path.stat().st_size
    with path.open('r+b') as file:
        file.truncate(head)
        file.truncate(size)  # zeros behind the head
    assert main(['models', 'show', str(folder)]) == 0
    assert main(['models', 'check', str(folder)]) == 1


def test_check_compares_every_known_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['models', 'check', str(folder), '--device', 'cpu']) == 0
    printed = capsys.readouterr().out
    assert 'every weight is there, none is surplus' in printed
    for check in ('vit', 'plain', 'guided, d = 4, identity', 'hard prefix, d = 4'):
        assert printed.count(check) == 2  # one request, and two


def test_check_finds_a_weight_that_is_a_little_wrong(folder: Path) -> None:
    path = folder / 'model.safetensors'
    weights = load_file(path)
    weights['model.action_out_proj.bias'] = weights['model.action_out_proj.bias'] + np.float32(
        1e-3
    )
    save_file(weights, path)
    assert main(['models', 'check', str(folder), '--device', 'cpu']) == 1


def test_check_does_not_judge_bfloat16(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ['models', 'check', str(folder), '--device', 'cpu', '--dtype', 'bfloat16']
    assert main(arguments) == 0
    assert 'any' in capsys.readouterr().out


def test_check_loads_where_no_answer_is_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / 'oracle.npz').unlink()
    assert main(['models', 'check', str(folder), '--device', 'cpu']) == 0
    assert 'no answer was compared' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('damage', 'reason'),
    [
        ('xinfer.json', 'write {"vision_heads": N} into'),
        ('config.json', 'config.json does not exist'),
        ('model.safetensors', 'model.safetensors does not exist'),
    ],
)
def test_what_a_folder_lacks_is_said_in_one_line(
    folder: Path, damage: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / damage).unlink()
    assert main(['models', 'check', str(folder)]) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count('\n') == 1


def test_missing_weight_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / 'model.safetensors'
    weights = load_file(path)
    del weights['model.time_mlp_in.bias']
    save_file(weights, path)
    assert main(['models', 'check', str(folder)]) == 2
    assert 'missing time_mlp_in.bias' in capsys.readouterr().err


def test_folder_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['models', 'show', '/nowhere/at/all']) == 2
    assert 'the folder /nowhere/at/all does not exist' in capsys.readouterr().err
