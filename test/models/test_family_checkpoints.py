# SPDX-License-Identifier: Apache-2.0
"""The strict loaders of SmolVLA and Wall-OSS checkpoints."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from xinfer_ros.errors import ConfigError, ModelError
from xinfer_ros.models.smolvla import SmolVla
from xinfer_ros.models.smolvla_checkpoint import load_smolvla, smolvla_files
from xinfer_ros.models.wall import Wall
from xinfer_ros.models.wall_checkpoint import load_wall

from .tiny_families import DATA, seeded_weights, wall_inputs, write_checkpoint

Weights = dict[str, torch.Tensor]
Load = Callable[[Path], SmolVla | Wall]
_SMOLVLA = DATA / 'smolvla_tiny'
_WALL = DATA / 'wall_tiny'


def _load_smolvla(folder: Path) -> SmolVla:
    return load_smolvla(smolvla_files(folder, head_dim=8, vision_head_dim=8))


def _load_wall(folder: Path) -> Wall:
    return load_wall(folder, wall_inputs())


class Checkpoint:
    """A checkpoint that can be spoilt before it is written."""

    def __init__(self, names: Path, config: Path, load: Load) -> None:
        self.weights, self._config, self._load = seeded_weights(names), config, load

    def loaded(self, folder: Path) -> SmolVla | Wall:
        """Write the checkpoint and load it."""
        write_checkpoint(folder, self.weights, self._config)
        return self._load(folder)

    def any_name(self, part: str) -> str:
        """Return the first published name that contains ``part``."""
        return next(name for name in self.weights if part in name)


@pytest.fixture(params=['smolvla', 'first', 'second'])
def checkpoint(request: pytest.FixtureRequest) -> Checkpoint:
    """Return one of each layout."""
    if request.param == 'smolvla':
        return Checkpoint(_SMOLVLA / 'weights.json', _SMOLVLA / 'config.json', _load_smolvla)
    names, config = f'weights_{request.param}.json', f'config_{request.param}.json'
    return Checkpoint(_WALL / names, _WALL / config, _load_wall)


@pytest.fixture
def smolvla() -> Checkpoint:
    """Return a SmolVLA checkpoint."""
    return Checkpoint(_SMOLVLA / 'weights.json', _SMOLVLA / 'config.json', _load_smolvla)


def test_missing_weight_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    name = checkpoint.any_name('layers.1.self_attn.o_proj')
    del checkpoint.weights[name]
    with pytest.raises(ModelError, match='missing .*' + re.escape(name[-25:])):
        checkpoint.loaded(tmp_path)


def test_surplus_weight_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.weights['model.odd.weight'] = torch.zeros(2)
    with pytest.raises(ModelError, match=r'surplus (model\.)?odd\.weight'):
        checkpoint.loaded(tmp_path)


def test_weight_of_another_shape_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    name = checkpoint.any_name('layers.1.self_attn.o_proj')
    checkpoint.weights[name] = torch.zeros(7, 3)
    with pytest.raises(ModelError, match=r'o_proj\S* has shape \(7, 3\), expected \('):
        checkpoint.loaded(tmp_path)


def test_weights_of_another_model_are_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.weights = {'model.odd': torch.zeros(1)}
    with pytest.raises(ModelError, match='missing '):
        checkpoint.loaded(tmp_path)


def test_absent_settings_are_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.loaded(tmp_path)
    (tmp_path / 'config.json').unlink()
    with pytest.raises(ConfigError, match=r'config\.json does not exist'):
        checkpoint._load(tmp_path)


def test_head_that_is_never_used_may_be_absent_or_there(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    whole = checkpoint.loaded(tmp_path).state_dict()
    checkpoint.weights = {
        name: weight for name, weight in checkpoint.weights.items() if 'lm_head' not in name
    }
    found = checkpoint.loaded(tmp_path).state_dict()
    assert all(torch.equal(found[name], whole[name]) for name in whole)


def test_prefix_is_optional(smolvla: Checkpoint, tmp_path: Path) -> None:
    name = 'model.state_proj.bias'
    expected = smolvla.weights[name]
    smolvla.weights = {name.removeprefix('model.'): w for name, w in smolvla.weights.items()}
    assert torch.equal(smolvla.loaded(tmp_path).state_dict()['state_proj.bias'], expected)


def test_statistics_among_the_weights_are_left_out(smolvla: Checkpoint, tmp_path: Path) -> None:
    """The first published files have them beside names that begin with model."""
    for place in ('normalize_inputs', 'normalize_targets', 'unnormalize_outputs'):
        smolvla.weights[f'{place}.so100.buffer_action.mean'] = torch.zeros(6)
    smolvla.loaded(tmp_path)


def test_parts_of_an_index_are_read(checkpoint: Checkpoint, tmp_path: Path) -> None:
    whole = checkpoint.loaded(tmp_path).state_dict()
    (tmp_path / 'model.safetensors').unlink()
    names = sorted(checkpoint.weights)
    parts = {'a.safetensors': names[::2], 'b.safetensors': names[1::2]}
    for file, chosen in parts.items():
        save_file({name: checkpoint.weights[name] for name in chosen}, tmp_path / file)
    index = {name: file for file, chosen in parts.items() for name in chosen}
    (tmp_path / 'model.safetensors.index.json').write_text(json.dumps({'weight_map': index}))
    found = checkpoint._load(tmp_path).state_dict()
    assert all(torch.equal(found[name], whole[name]) for name in whole)


def test_every_stored_number_is_in_the_model(checkpoint: Checkpoint, tmp_path: Path) -> None:
    held = {
        weight.untyped_storage().data_ptr(): weight.untyped_storage().nbytes()
        for weight in checkpoint.loaded(tmp_path).state_dict().values()
    }
    stored = sum(w.nbytes for name, w in checkpoint.weights.items() if 'lm_head' not in name)
    assert sum(held.values()) == stored


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('add_image_special_tokens', True),
        ('max_period', 8.0),
        ('resize_imgs_with_padding', [64, 32]),
    ],
)
def test_setting_of_another_smolvla_is_refused(
    smolvla: Checkpoint, tmp_path: Path, name: str, value: object
) -> None:
    smolvla.loaded(tmp_path)
    settings = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps({**settings, name: value}))
    with pytest.raises(ModelError, match=re.escape(f'{name} is {value!r}, ')):
        _load_smolvla(tmp_path)


def test_expert_with_half_the_layers_is_refused(smolvla: Checkpoint, tmp_path: Path) -> None:
    smolvla.weights = {
        name: weight
        for name, weight in smolvla.weights.items()
        if 'lm_expert.layers.2.' not in name and 'lm_expert.layers.3.' not in name
    }
    with pytest.raises(ModelError, match=r'layers = 2 .* 4'):
        smolvla.loaded(tmp_path)


def test_adaptive_norms_of_wall_oss_are_refused(tmp_path: Path) -> None:
    second = Checkpoint(_WALL / 'weights_second.json', _WALL / 'config_second.json', _load_wall)
    second.loaded(tmp_path)
    settings = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps({**settings, 'use_adarms': True}))
    with pytest.raises(ModelError, match='use_adarms is True'):
        _load_wall(tmp_path)


def test_fused_projection_with_other_rows_is_named(tmp_path: Path) -> None:
    second = Checkpoint(_WALL / 'weights_second.json', _WALL / 'config_second.json', _load_wall)
    name = second.any_name('qkv_proj_experts.1.bias')
    second.weights[name] = torch.zeros(63)
    with pytest.raises(ModelError, match=r'qkv_proj_experts\.1\.bias has 63 rows, expected 64'):
        second.loaded(tmp_path)


def test_second_generation_may_be_stored_without_fused_projections(tmp_path: Path) -> None:
    second = Checkpoint(_WALL / 'weights_second.json', _WALL / 'config_second.json', _load_wall)
    whole = second.loaded(tmp_path).state_dict()
    apart: Weights = {}
    for name, weight in second.weights.items():
        if 'qkv_proj_experts' in name:
            for part, rows in zip('qkv', torch.split(weight, [32, 16, 16]), strict=True):
                apart[name.replace('qkv_proj', f'{part}_proj')] = rows
        elif 'gate_up_proj' in name:
            for part, rows in zip(('gate', 'up'), weight.chunk(2), strict=True):
                apart[name.replace('gate_up', part)] = rows
        else:
            apart[name] = weight
    second.weights = apart
    found = second.loaded(tmp_path).state_dict()
    assert all(torch.equal(found[name], whole[name]) for name in whole)


def test_attention_of_the_first_generation_is_shared_and_not_copied(tmp_path: Path) -> None:
    first = Checkpoint(_WALL / 'weights_first.json', _WALL / 'config_first.json', _load_wall)
    found = first.loaded(tmp_path).state_dict()
    name = 'layers.0.self_attn.q_proj.weight'
    assert found[f'language.{name}'].data_ptr() == found[f'expert.{name}'].data_ptr()


def test_weights_are_converted(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.loaded(tmp_path)
    if checkpoint._load is _load_smolvla:
        files = smolvla_files(tmp_path, head_dim=8, vision_head_dim=8)
        model: SmolVla | Wall = load_smolvla(files, dtype=torch.bfloat16)
    else:
        model = load_wall(tmp_path, wall_inputs(), dtype=torch.bfloat16)
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    config, layers = model.config, model.config.language.layers
    noise = torch.zeros(1, config.horizon, config.action_width)
    cache = torch.zeros(1, layers, 2, 3, config.language.kv_width, dtype=torch.bfloat16)
    chunk = model.action(cache, torch.ones(1, 3, dtype=torch.int32), noise)
    assert chunk.dtype == torch.float32
    assert chunk.isfinite().all()
