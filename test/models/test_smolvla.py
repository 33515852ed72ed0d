# SPDX-License-Identifier: Apache-2.0
"""The SmolVLA stages against LeRobot's own answers for the same tiny weights."""

import numpy as np
import pytest
import torch

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.rtc import Jacobian
from xinfer_ros.models.smolvla import SmolVla, SmolVlaConfig, published_smolvla
from xinfer_ros.models.smolvla_vision import SmolVisionConfig

from .seeded_weights import seeded_array
from .tiny_families import DATA, tiny_smolvla

_TOLERANCE = 1e-5
_HORIZON = 10


@pytest.fixture(scope='module')
def model(tmp_path_factory: pytest.TempPathFactory) -> SmolVla:
    """Return the tiny model, read from a file in the published layout."""
    return tiny_smolvla(tmp_path_factory.mktemp('smolvla'))


@pytest.fixture(scope='module')
def oracle() -> dict[str, torch.Tensor]:
    """Return the known answers for two requests; the second lacks camera 1."""
    with np.load(DATA / 'smolvla_tiny' / 'oracle.npz') as stored:
        answers = {name: torch.from_numpy(stored[name]) for name in stored.files}
    inputs = {'state': (2, 8), 'noise': (2, _HORIZON, 8), 'previous': (2, _HORIZON, 8)}
    for name, shape in inputs.items():
        answers[name] = torch.from_numpy(seeded_array(name, shape))
    return answers


def _context(
    model: SmolVla, oracle: dict[str, torch.Tensor], rows: slice = slice(None)
) -> tuple[torch.Tensor, torch.Tensor]:
    names = ('features', 'image_mask', 'tokens', 'token_mask', 'state')
    return model.prefill(*(oracle[name][rows] for name in names))


def _same(found: torch.Tensor, expected: torch.Tensor, tolerance: float = _TOLERANCE) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=tolerance)


def test_vit_gives_the_published_features(model: SmolVla, oracle: dict[str, torch.Tensor]) -> None:
    for camera in range(2):
        image = torch.from_numpy(np.clip(seeded_array(f'image{camera}', (2, 3, 32, 32)), -1, 1))
        scale = model.config.language.hidden**-0.5  # back to where numbers are near 1
        _same(model.vit(image) * scale, oracle['features'][:, camera] * scale)


def test_actions_are_the_published_ones(model: SmolVla, oracle: dict[str, torch.Tensor]) -> None:
    _same(model.action(*_context(model, oracle), oracle['noise']), oracle['actions'])


def test_request_in_a_batch_is_answered_as_alone(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    for row in range(2):
        only = slice(row, row + 1)
        alone = model.action(*_context(model, oracle, only), oracle['noise'][only])
        _same(alone, oracle['actions'][only])


def test_padding_of_the_prompt_changes_nothing(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    longer = dict(oracle)
    longer['tokens'] = torch.nn.functional.pad(oracle['tokens'], (0, 20), value=7)
    longer['token_mask'] = torch.nn.functional.pad(oracle['token_mask'], (0, 20))
    _same(model.action(*_context(model, longer), oracle['noise']), oracle['actions'])


def test_missing_camera_is_not_looked_at(model: SmolVla, oracle: dict[str, torch.Tensor]) -> None:
    other = dict(oracle)
    other['features'] = oracle['features'].clone()
    other['features'][1, 1] = 5.0
    found = model.action(*_context(model, other), oracle['noise'])
    _same(found, oracle['actions'])
    other['image_mask'] = torch.ones_like(oracle['image_mask'])
    looked_at = model.action(*_context(model, other), oracle['noise'])
    assert (looked_at[1] - oracle['actions'][1]).abs().max() > 1e-2


def test_state_is_seen_by_the_rows_but_not_by_the_prompt(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    other = {**oracle, 'state': oracle['state'] + 1.0}
    cache, present = _context(model, oracle)
    changed, _ = _context(model, other)
    assert torch.equal(cache[..., :-1, :], changed[..., :-1, :])
    found = model.action(changed, present, oracle['noise'])
    assert (found - oracle['actions']).abs().max() > 1e-2


def test_frozen_rows_are_the_leftover_and_the_others_follow_it(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    frozen = torch.zeros(2, _HORIZON, dtype=torch.bool)
    frozen[0, :3] = True
    rtc = RtcInputs(previous=oracle['previous'], weights=torch.zeros(2, _HORIZON), frozen=frozen)
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    assert torch.equal(found[0, :3], oracle['previous'][0, :3])
    assert (found[0, 3:] - oracle['actions'][0, 3:]).abs().max() > 1e-3
    _same(found[1], oracle['actions'][1])


@pytest.mark.parametrize('jacobian', list(Jacobian))
def test_guidance_pulls_only_the_request_that_has_weights(
    model: SmolVla, oracle: dict[str, torch.Tensor], jacobian: Jacobian
) -> None:
    weights = torch.zeros(2, _HORIZON)
    weights[0] = torch.from_numpy(prefix_weights(_HORIZON, 4, 8, Schedule.LINEAR))
    rtc = RtcInputs(previous=oracle['previous'], weights=weights, jacobian=jacobian)
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    _same(found[1], oracle['actions'][1])
    before = (oracle['actions'][0, :4] - oracle['previous'][0, :4]).abs().mean()
    after = (found[0, :4] - oracle['previous'][0, :4]).abs().mean()
    assert after < 0.5 * before


def test_cache_with_room_behind_it_gives_the_same_actions(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    cache, present = _context(model, oracle)
    roomy = torch.nn.functional.pad(cache, (0, 0, 0, _HORIZON), value=3.0)
    _same(model.action(roomy, present, oracle['noise']), oracle['actions'])


def test_request_without_camera_and_prompt_stays_finite(
    model: SmolVla, oracle: dict[str, torch.Tensor]
) -> None:
    empty = {name: torch.zeros_like(oracle[name]) for name in ('image_mask', 'token_mask')}
    cache, present = _context(model, {**oracle, **empty})
    assert cache.isfinite().all()
    assert model.action(cache, present, oracle['noise']).isfinite().all()


def test_action_before_fix_times_is_an_error() -> None:
    with torch.device('meta'):
        bare = SmolVla(published_smolvla())
    with pytest.raises(RuntimeError, match='fix_times'):
        bare.action(torch.empty(1), torch.empty(1), torch.empty(1, 50, 32))


def test_published_sizes_have_the_published_number_of_weights() -> None:
    """450 M by the model card; the head that LeRobot stores is among them, though unused."""
    config = published_smolvla()
    with torch.device('meta'):
        model = SmolVla(config)
    unused_head = config.vocabulary * config.language.hidden
    total = sum(weight.numel() for weight in model.parameters()) + unused_head
    assert total == pytest.approx(450e6, rel=0.005)
    assert config.vision.num_tokens == 64


def test_sizes_that_do_not_share_a_cache_are_refused() -> None:
    good = published_smolvla()
    sizes = {'hidden': 720, 'mlp': 8, 'heads': 15, 'kv_heads': 5, 'head_dim': 64}
    with pytest.raises(ValueError, match=r'layers = 8 .* 16'):
        SmolVlaConfig(
            vision=good.vision,
            language=good.language,
            expert=GemmaConfig(layers=8, **sizes),
            vocabulary=8,
            horizon=50,
            action_width=32,
            state_width=32,
        )


def test_fold_that_does_not_tile_the_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match='squares of 5'):
        SmolVisionConfig(tower=published_smolvla().vision.tower, fold=5)
