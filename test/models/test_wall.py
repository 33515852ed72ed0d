# SPDX-License-Identifier: Apache-2.0
"""The Wall-OSS stages against published code, for the same tiny weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.rtc import Jacobian
from xinfer_ros.models.wall import Wall
from xinfer_ros.models.wall_config import (
    WallConfig,
    paper_vla_2b,
    published_wall_oss_05,
    qwen_decoder,
)

from .seeded_weights import seeded_array
from .tiny_families import DATA, WALL_PICTURES, tiny_wall

_TOLERANCE = 1e-5
_JOINTS, _HORIZON = 4, 5
Oracle = dict[str, torch.Tensor]


@pytest.fixture(scope='module', params=['first', 'second'])
def generation(request: pytest.FixtureRequest) -> str:
    """Return the name of a published generation."""
    return str(request.param)


@pytest.fixture(scope='module')
def model(generation: str, tmp_path_factory: pytest.TempPathFactory) -> Wall:
    """Return the tiny model of a generation."""
    return tiny_wall(tmp_path_factory.mktemp(generation), generation)


@pytest.fixture(scope='module')
def oracle(generation: str) -> Oracle:
    """Return inputs and known answers for two requests; the second lacks camera 1."""
    with np.load(DATA / 'wall_tiny' / 'oracle.npz') as stored:
        answers = {name: torch.from_numpy(stored[name]) for name in stored.files}
    for name, shape in {'state': (2, 6), 'noise': (2, 5, 6), 'previous': (2, 5, 6)}.items():
        answers[name] = torch.from_numpy(seeded_array(name, shape))
    answers['state'][:, _JOINTS:] = 0.0
    answers['actions'] = answers[f'actions_{generation}']
    return answers


def _context(
    model: Wall, oracle: Oracle, rows: slice = slice(None)
) -> tuple[torch.Tensor, torch.Tensor]:
    names = ('features', 'image_mask', 'tokens', 'token_mask', 'state')
    return model.prefill(*(oracle[name][rows] for name in names))


def _same(found: torch.Tensor, expected: torch.Tensor, tolerance: float = _TOLERANCE) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=tolerance)


def test_vit_gives_the_published_features(model: Wall, oracle: Oracle) -> None:
    found = [
        model.vit(torch.from_numpy(seeded_array(f'picture{camera}', (2, 3, *size))))
        for camera, size in enumerate(WALL_PICTURES)
    ]
    _same(torch.cat(found, dim=1), oracle['features'])


def test_actions_are_the_published_ones(model: Wall, oracle: Oracle) -> None:
    _same(model.action(*_context(model, oracle), oracle['noise']), oracle['actions'])


def test_request_in_a_batch_is_answered_as_alone(model: Wall, oracle: Oracle) -> None:
    for row in range(2):
        only = slice(row, row + 1)
        alone = model.action(*_context(model, oracle, only), oracle['noise'][only])
        _same(alone, oracle['actions'][only])


def test_padding_of_the_prompt_changes_nothing(model: Wall, oracle: Oracle) -> None:
    longer = dict(oracle)
    longer['tokens'] = torch.nn.functional.pad(oracle['tokens'], (0, 9), value=190)
    longer['token_mask'] = torch.nn.functional.pad(oracle['token_mask'], (0, 9))
    _same(model.action(*_context(model, longer), oracle['noise']), oracle['actions'])


def test_missing_camera_is_not_looked_at(model: Wall, oracle: Oracle) -> None:
    other = {**oracle, 'features': oracle['features'].clone()}
    other['features'][1, 15:] = 5.0
    _same(model.action(*_context(model, other), oracle['noise']), oracle['actions'])


def test_first_camera_may_be_the_missing_one(model: Wall, oracle: Oracle) -> None:
    alone = {name: oracle[name][:1].clone() for name in ('tokens', 'token_mask', 'state')}
    alone['tokens'][0, 6:21] = 3  # words where the pictures of camera 0 were
    alone['features'] = oracle['features'][:1].clone()
    alone['image_mask'] = torch.tensor([[False, True]])
    expected, _ = _context(model, {**oracle, **alone})
    alone['features'][:, :15] = 5.0
    found, _ = _context(model, {**oracle, **alone})
    assert torch.equal(found, expected)
    alone['features'][:, 15:] = 5.0
    assert not torch.equal(_context(model, {**oracle, **alone})[0], expected)


def test_state_in_words_needs_no_state_token(model: Wall, oracle: Oracle) -> None:
    told = {**oracle, 'tokens': torch.where(oracle['tokens'] == 191, 7, oracle['tokens'])}
    expected, _ = _context(model, told)
    found, _ = _context(model, {**told, 'state': oracle['state'] + 1.0})
    assert torch.equal(found, expected)


def test_frozen_rows_are_the_leftover_and_the_others_follow_it(
    model: Wall, oracle: Oracle
) -> None:
    frozen = torch.zeros(2, _HORIZON, dtype=torch.bool)
    frozen[0, :2] = True
    rtc = RtcInputs(previous=oracle['previous'], weights=torch.zeros(2, _HORIZON), frozen=frozen)
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    assert torch.equal(found[0, :2], oracle['previous'][0, :2])
    assert (found[0, 2:] - oracle['actions'][0, 2:]).abs().max() > 1e-3
    _same(found[1], oracle['actions'][1])


@pytest.mark.parametrize('jacobian', list(Jacobian))
def test_guidance_pulls_only_the_request_that_has_weights(
    model: Wall, oracle: Oracle, jacobian: Jacobian
) -> None:
    weights = torch.zeros(2, _HORIZON)
    weights[0] = torch.from_numpy(prefix_weights(_HORIZON, 2, 4, Schedule.LINEAR))
    rtc = RtcInputs(previous=oracle['previous'], weights=weights, jacobian=jacobian)
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    _same(found[1], oracle['actions'][1])
    target = oracle['previous'][0, :2, :_JOINTS]
    before = (oracle['actions'][0, :2, :_JOINTS] - target).abs().mean()
    assert (found[0, :2, :_JOINTS] - target).abs().mean() < 0.5 * before


def test_request_without_prompt_stays_finite(model: Wall, oracle: Oracle) -> None:
    empty = {name: torch.zeros_like(oracle[name]) for name in ('image_mask', 'token_mask')}
    cache, marks = _context(model, {**oracle, **empty})
    assert cache.isfinite().all()
    assert model.action(cache, marks, oracle['noise']).isfinite().all()


def test_padded_columns_go_where_the_published_code_sends_them(tmp_path: Path) -> None:
    model = tiny_wall(tmp_path, 'second', padding_target=-1.0)
    with np.load(DATA / 'wall_tiny' / 'oracle.npz') as stored:
        answers = {name: torch.from_numpy(stored[name]) for name in stored.files}
    answers['state'] = torch.from_numpy(seeded_array('state', (2, 6)))
    answers['state'][:, _JOINTS:] = 0.0
    noise = torch.from_numpy(seeded_array('noise', (2, 5, 6)))
    found = model.action(*_context(model, answers), noise)
    _same(found, answers['actions_second_padded'])
    _same(found[..., _JOINTS:], -0.999 + 0.001 * noise[..., _JOINTS:])


def test_pixels_are_normalised_as_published(model: Wall) -> None:
    grey = torch.full((1, 2, 2, 3), 128, dtype=torch.uint8)
    expected = (128 / 255 - np.array(model.config.pixel_mean)) / model.config.pixel_deviation
    _same(model.pixels(grey)[0, :, 0, 0], torch.from_numpy(expected), 1e-6)


def test_action_before_fix_times_is_an_error() -> None:
    with torch.device('meta'):
        bare = Wall(published_wall_oss_05())
    with pytest.raises(RuntimeError, match='fix_times'):
        bare.action(torch.empty(1), torch.empty(1, 1), torch.empty(1, 10, 26))


def test_published_sizes_have_the_published_number_of_weights() -> None:
    """More than 4 G by the technical report, 4.2 G by others; embeddings serve as head too."""
    with torch.device('meta'):
        model = Wall(published_wall_oss_05())
    total = sum(weight.numel() for weight in model.parameters())
    assert total == pytest.approx(4.2e9, rel=0.02)


@pytest.mark.parametrize('config', [published_wall_oss_05(), paper_vla_2b()])
def test_three_views_are_the_217_tokens_of_868_patches_in_the_paper(config: WallConfig) -> None:
    patches = sum(height * width // config.vision.patch**2 for height, width in config.pictures)
    assert (patches, config.picture_tokens) == (868, 217)
    assert config.pictures[0] == (196, 308)


def test_published_sizes_fit_together_from_pictures_to_actions() -> None:
    config, prefix = published_wall_oss_05(), 445
    with torch.device('meta'):
        model = Wall(replace(config, num_steps=1))
        model.fix_times()
        seen = [model.vit(torch.empty(2, 3, *size)) for size in config.pictures]
        tokens = torch.zeros(2, prefix, dtype=torch.long)
        shown = torch.ones(2, 3, dtype=torch.bool)
        state, noise = torch.empty(2, 26), torch.empty(2, 10, 26)
        cache, marks = model.prefill(torch.cat(seen, dim=1), shown, tokens, tokens == 0, state)
        assert cache.shape == (2, 36, 2, prefix, 256)
        assert model.action(cache, marks, noise).shape == noise.shape


def test_vla_2b_has_about_2_billion_weights() -> None:
    with torch.device('meta'):
        model = Wall(paper_vla_2b())
    assert sum(weight.numel() for weight in model.parameters()) == pytest.approx(2.4e9, rel=0.02)


def test_sections_that_do_not_fill_a_head_are_refused() -> None:
    good = published_wall_oss_05()
    narrow = {'layers': 1, 'heads': 16, 'kv_heads': 2, 'head_dim': 64, 'mlp': 8}
    with pytest.raises(ValueError, match=r'half of the head width of 64'):
        WallConfig(
            vision=good.vision,
            language=qwen_decoder(hidden=32, **narrow),
            expert=qwen_decoder(hidden=16, **narrow),
            vocabulary=8,
            pictures=good.pictures,
            horizon=4,
            action_width=8,
            state_width=8,
            state_hidden=32,
            image_token=1,
            state_token=2,
        )


def test_picture_that_merged_patches_do_not_tile_is_refused() -> None:
    with pytest.raises(ValueError, match='28 pixels do not tile a picture of 224x300'):
        published_wall_oss_05(((224, 300),))
