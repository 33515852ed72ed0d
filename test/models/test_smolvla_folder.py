# SPDX-License-Identifier: Apache-2.0
"""SmolVLA folders as LeRobot writes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.bare_tokenizer import BareTokenizer
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.smolvla_folder import differences, load, read_folder, report

from .filled_slots import empty_slots, write_request
from .pi05_folders import mend, write_settings
from .tiny_families import DATA, seeded_weights, write_checkpoint

_OPTIONS = ModelOptions(device='cpu')
_DIM = 6
_TINY = {'head_dim': 8, 'vision_head_dim': 8, 'tokenizer': 'bytes'}
_BEFORE, _AFTER = 'policy_preprocessor.json', 'policy_postprocessor.json'


def _normaliser(name: str, file: str) -> dict[str, Any]:
    features = {
        'observation.state': {'type': 'STATE', 'shape': [_DIM]},
        'action': {'type': 'ACTION', 'shape': [_DIM]},
    }
    modes = {'VISUAL': 'IDENTITY', 'STATE': 'MEAN_STD', 'ACTION': 'MEAN_STD'}
    config = {'eps': 1e-8, 'features': features, 'norm_map': modes}
    return {'registry_name': name, 'config': config, 'state_file': file}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the tiny checkpoint and processors' files."""
    source = DATA / 'smolvla_tiny'
    write_checkpoint(tmp_path, seeded_weights(source / 'weights.json'), source / 'config.json')
    camera = {'type': 'VISUAL', 'shape': [3, 48, 64]}
    inputs = {
        'observation.state': {'type': 'STATE', 'shape': [_DIM]},
        'observation.images.camera1': camera,
        'observation.images.camera2': camera,
        'observation.images.empty_camera_0': camera,
    }
    outputs = {'action': {'type': 'ACTION', 'shape': [_DIM]}}
    mend(
        tmp_path / 'config.json',
        lambda found: found.update(input_features=inputs, output_features=outputs),
    )
    renames = {'observation.images.top': 'observation.images.camera1'}
    before = [
        {'registry_name': 'rename_observations_processor', 'config': {'rename_map': renames}},
        {'registry_name': 'to_batch_processor', 'config': {}},
        {'registry_name': 'smolvla_new_line_processor', 'config': {}},
        {'registry_name': 'tokenizer_processor', 'config': {'max_length': 48}},
        {'registry_name': 'device_processor', 'config': {}},
        _normaliser('normalizer_processor', 'before.safetensors'),
    ]
    after = [
        _normaliser('unnormalizer_processor', 'after.safetensors'),
        {'registry_name': 'device_processor', 'config': {}},
    ]
    (tmp_path / _BEFORE).write_text(json.dumps({'steps': before}))
    (tmp_path / _AFTER).write_text(json.dumps({'steps': after}))
    arrays = {
        'observation.state.mean': np.arange(_DIM, dtype=np.float32),
        'observation.state.std': np.full(_DIM, 2.0, np.float32),
        'action.mean': np.full(_DIM, 10.0, np.float32),
        'action.std': np.full(_DIM, 0.5, np.float32),
    }
    save_file(arrays, tmp_path / 'before.safetensors')
    save_file(arrays, tmp_path / 'after.safetensors')
    write_settings(tmp_path, **_TINY)
    return tmp_path


def test_contract_has_the_robots_cameras_in_the_models_size(folder: Path) -> None:
    contract = read_folder(folder, _OPTIONS).contract
    assert [(c.name, c.height, c.width) for c in contract.cameras] == [
        ('top', 32, 32),
        ('camera2', 32, 32),
    ]
    assert (contract.action_dim, contract.horizon) == (_DIM, 10)


def test_loaded_folder_answers_in_robot_units(folder: Path) -> None:
    model = load(folder, _OPTIONS)
    slots = empty_slots(model.contract, 2)
    for slot in range(2):
        write_request(slots, slot, seed=slot)
    model.bind(slots, LanePlan(num_states=2, max_batch=(2, 2, 2)))
    model.warm_up()
    for stage in Stage:
        assert model.run(stage, Batch(slot_ids=(0, 1), state_ids=(0, 1))) == {}
    assert np.isfinite(slots.actions).all()
    assert np.abs(slots.actions - 10.0).max() < 10.0  # deviations of 0.5 around 10
    assert np.abs(slots.actions[0] - slots.actions[1]).max() > 1e-3


def test_state_and_actions_are_normalised_by_their_own_statistics(folder: Path) -> None:
    processor = read_folder(folder, _OPTIONS).processor
    slots = empty_slots(read_folder(folder, _OPTIONS).contract, 1)
    slots.state[0] = np.arange(_DIM) + 2.0
    np.testing.assert_allclose(processor.state(slots, 0), np.ones(_DIM), atol=1e-6)
    rows = np.ones((10, _DIM), np.float32)
    np.testing.assert_allclose(processor.actions(rows, slots, 0), 10.5 * rows, atol=1e-6)


def test_joints_without_names_are_warned_of(folder: Path) -> None:
    assert 'joint_0 to joint_5' in read_folder(folder, _OPTIONS).warnings[0]
    names = ['a', 'b', 'c', 'd', 'e', 'f']
    write_settings(folder, **_TINY, joint_names=names)
    found = read_folder(folder, _OPTIONS)
    assert found.contract.joint_names == tuple(names)
    assert found.warnings == ()


def test_names_that_are_not_as_many_as_joints_are_refused(folder: Path) -> None:
    write_settings(folder, **_TINY, joint_names=['a', 'b'])
    with pytest.raises(ConfigError, match='6 different names are needed'):
        read_folder(folder, _OPTIONS)


def test_report_tells_sizes_and_statistics_without_the_weights(folder: Path) -> None:
    found = report(folder, _OPTIONS)
    assert found.family == 'SmolVLA'
    assert dict(found.facts)['vision'] == '32x32, 16 tokens a camera'
    assert found.joints[1] == (
        'joint_1', '1 becomes 0, 2 more becomes 1', '10 becomes 0, 0.5 more becomes 1', 'absolute'
    )  # fmt: skip


def test_check_loads_the_weights_and_tells_its_progress(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    assert differences(folder, _OPTIONS, lambda done, total: told.append((done, total))) == []
    assert told[-1] == (len(told), len(told))


def test_folder_without_tokenizer_says_which_is_needed(folder: Path) -> None:
    write_settings(folder, head_dim=8, vision_head_dim=8)
    with pytest.raises(ConfigError, match='SmolVLM2-500M-Video-Instruct'):
        read_folder(folder, _OPTIONS)


def test_unknown_step_of_a_processor_is_refused(folder: Path) -> None:
    odd = {'registry_name': 'odd_step', 'config': {}}
    mend(folder / _BEFORE, lambda found: found['steps'].append(odd))
    with pytest.raises(ConfigError, match="step 'odd_step' is unknown"):
        read_folder(folder, _OPTIONS)


def test_bare_tokenizer_puts_nothing_first_and_keeps_marked_words(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip('tokenizers')
    words = {word: index for index, word in enumerate(('<unk>', 'pick', 'up', '<|propri|>'))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token='<unk>'))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(['<|propri|>'])
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(tmp_path / 'tokenizer.json'))
    found = BareTokenizer(tmp_path / 'tokenizer.json')
    assert found.encode('pick up<|propri|>up') == [1, 2, 3, 2]
    assert found.vocabulary == 4
