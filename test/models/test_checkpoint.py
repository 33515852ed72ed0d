# SPDX-License-Identifier: Apache-2.0
"""The strict loader of π0.5 checkpoints."""

import io
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from xinfer_ros.errors import ModelError
from xinfer_ros.models.checkpoint import load_pi05
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05Config
from xinfer_ros.models.siglip import VisionConfig

_FILE = 'model.safetensors'
_STORED = Path(__file__).parents[1] / 'data' / 'pi05_tiny' / _FILE
_CONFIG = Pi05Config(
    vision=VisionConfig(height=224, width=224, patch=28, hidden=64, layers=2, mlp=128, heads=4),
    language=GemmaConfig(hidden=64, layers=2, mlp=128, heads=8, kv_heads=1, head_dim=16),
    expert=GemmaConfig(hidden=32, layers=2, mlp=64, heads=8, kv_heads=1, head_dim=16),
    vocabulary=1024,
    horizon=16,
    action_width=32,
)
_HEAD = 'model.paligemma_with_expert.paligemma.lm_head.weight'
_EMBEDDING = 'model.paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight'
Weights = dict[str, torch.Tensor]


@pytest.fixture
def weights() -> Weights:
    """Return the stored weights, free to be changed."""
    return load_file(_STORED)


def _load(weights: Weights, folder: Path) -> Weights:
    save_file(weights, folder / _FILE)
    return load_pi05(folder, _CONFIG).state_dict()


def test_missing_weight_is_named(weights: Weights, tmp_path: Path) -> None:
    del weights['model.time_mlp_in.bias']
    with pytest.raises(ModelError, match=r'missing time_mlp_in\.bias'):
        _load(weights, tmp_path)


def test_surplus_weight_is_named(weights: Weights, tmp_path: Path) -> None:
    weights['model.state_proj.weight'] = torch.zeros(2)
    with pytest.raises(ModelError, match=r'surplus state_proj\.weight'):
        _load(weights, tmp_path)


def test_weight_of_another_shape_is_named_with_both_shapes(
    weights: Weights, tmp_path: Path
) -> None:
    weights['model.action_in_proj.bias'] = torch.zeros(7)
    with pytest.raises(ModelError, match=r'action_in_proj\.bias has shape \(7,\), expected \(32,'):
        _load(weights, tmp_path)


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_weight_that_is_not_finite_is_named(
    weights: Weights, tmp_path: Path, value: float
) -> None:
    """Else every answer is refused, robot by robot, and nobody knows why."""
    weights['model.action_in_proj.bias'][3] = value
    with pytest.raises(ModelError, match=r'action_in_proj\.bias holds values that are not finite'):
        _load(weights, tmp_path)


def test_weight_of_whole_numbers_is_named_with_its_type(weights: Weights, tmp_path: Path) -> None:
    weights['model.action_in_proj.bias'] = weights['model.action_in_proj.bias'].to(torch.int8)
    with pytest.raises(ModelError, match=r'action_in_proj\.bias holds torch\.int8; floating'):
        _load(weights, tmp_path)


def test_many_problems_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r'and \d+ more'):
        _load({'model.odd': torch.zeros(1)}, tmp_path)


def test_prefix_is_optional(weights: Weights, tmp_path: Path) -> None:
    bare = {name.removeprefix('model.'): weight for name, weight in weights.items()}
    found = _load(bare, tmp_path)
    assert torch.equal(found['action_in_proj.bias'], weights['model.action_in_proj.bias'])


def test_heads_that_are_never_used_may_be_absent(weights: Weights, tmp_path: Path) -> None:
    _load({name: value for name, value in weights.items() if 'lm_head' not in name}, tmp_path)


def test_tied_embedding_is_taken_from_the_head(weights: Weights, tmp_path: Path) -> None:
    del weights[_EMBEDDING]
    found = _load(weights, tmp_path)
    assert torch.equal(found['language.embed_tokens.weight'], weights[_HEAD])


def test_head_is_ignored_where_the_embedding_is_stored(weights: Weights, tmp_path: Path) -> None:
    found = _load(weights, tmp_path)
    assert torch.equal(found['language.embed_tokens.weight'], weights[_EMBEDDING])


def test_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r'model\.safetensors does not exist'):
        load_pi05(tmp_path, _CONFIG)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / _FILE).write_bytes(b'no weights')
    with pytest.raises(ModelError, match='not a readable safetensors file'):
        load_pi05(tmp_path, _CONFIG)


def test_weights_are_converted_but_for_norms() -> None:
    """Published code runs the language model's norms in float32 whatever the model's type."""
    model = load_pi05(_STORED.parent, _CONFIG, dtype=torch.bfloat16)
    wide = {name for name, weight in model.named_parameters() if weight.dtype == torch.float32}
    assert wide == {
        'language.norm.weight',
        *(
            f'language.layers.{layer}.{name}.weight'
            for layer in range(2)
            for name in ('input_layernorm', 'post_attention_layernorm')
        ),
    }
    narrow = {weight.dtype for name, weight in model.named_parameters() if name not in wide}
    assert narrow == {torch.bfloat16}


def test_narrow_weights_answer_nearly_as_wide_ones() -> None:
    wide, narrow = (
        load_pi05(_STORED.parent, _CONFIG, dtype=dtype)
        for dtype in (torch.float32, torch.bfloat16)
    )
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, 16, 32, generator=generator)
    cache = torch.randn(1, 2, 2, 3, 16, generator=generator)
    present = torch.ones(1, 3, dtype=torch.bool)
    found = narrow.action(cache.bfloat16(), present, noise)
    assert found.dtype == torch.float32
    expected = wide.action(cache, present, noise)
    assert (found - expected).abs().max() < 0.02 * expected.abs().max()


def test_progress_counts_every_weight(weights: Weights, tmp_path: Path) -> None:
    save_file(weights, tmp_path / _FILE)
    told: list[tuple[int, int]] = []
    load_pi05(tmp_path, _CONFIG, progress=lambda count, total: told.append((count, total)))
    total = told[0][1]
    assert told == [(count, total) for count in range(1, total + 1)]


def test_weights_may_lie_in_parts(weights: Weights, tmp_path: Path) -> None:
    names = sorted(weights)
    parts = {'model-1.safetensors': names[::2], 'model-2.safetensors': names[1::2]}
    for part, members in parts.items():
        save_file({name: weights[name] for name in members}, tmp_path / part)
    index = {'weight_map': {name: part for part, found in parts.items() for name in found}}
    (tmp_path / f'{_FILE}.index.json').write_text(json.dumps(index))
    found = load_pi05(tmp_path, _CONFIG).state_dict()
    assert torch.equal(found['action_in_proj.bias'], weights['model.action_in_proj.bias'])


@pytest.mark.parametrize('text', ['{', '[]', '{"weight_map": {"a": "../b.safetensors"}}'])
def test_index_that_can_not_be_meant_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / f'{_FILE}.index.json').write_text(text)
    with pytest.raises(ModelError, match=r'index\.json'):
        load_pi05(tmp_path, _CONFIG)


class _Canary:
    """What a pickle that is loaded would do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self._path,))


def test_crafted_checkpoint_is_refused_and_nothing_in_it_runs(tmp_path: Path) -> None:
    """SE-01: a pickle under the name of a safetensors file, as torch.load would take it."""
    canary = tmp_path / 'canary'
    torch.save({'model.time_mlp_in.bias': _Canary(canary)}, tmp_path / _FILE)
    with pytest.raises(ModelError, match=_FILE):
        load_pi05(tmp_path, _CONFIG)
    assert not canary.exists()
    stored = io.BytesIO((tmp_path / _FILE).read_bytes())
    torch.load(stored, weights_only=False)  # the canary does sing where it is loaded
    assert canary.exists()
