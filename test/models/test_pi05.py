# SPDX-License-Identifier: Apache-2.0
"""The π0.5 stages against the answers of the published implementation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.models.checkpoint import load_pi05
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05, Pi05Config, published_config
from xinfer_ros.models.rtc import Jacobian
from xinfer_ros.models.siglip import VisionConfig

_FOLDER = Path(__file__).parents[1] / 'data' / 'pi05_tiny'
_TOLERANCE = 1e-5
Oracle = dict[str, torch.Tensor]


def oracle_config() -> Pi05Config:
    """Return the sizes of the checkpoint with known answers."""
    return Pi05Config(
        vision=VisionConfig(
            height=224, width=224, patch=28, hidden=64, layers=2, mlp=128, heads=4
        ),
        language=GemmaConfig(hidden=64, layers=2, mlp=128, heads=8, kv_heads=1, head_dim=16),
        expert=GemmaConfig(hidden=32, layers=2, mlp=64, heads=8, kv_heads=1, head_dim=16),
        vocabulary=1024,
        horizon=16,
        action_width=32,
    )


@pytest.fixture(scope='module')
def model() -> Pi05:
    """Return the loaded checkpoint."""
    return load_pi05(_FOLDER, oracle_config())


@pytest.fixture(scope='module', params=['b1', 'b2'])
def oracle(request: pytest.FixtureRequest) -> Oracle:
    """Return inputs and known answers of one request, then of two."""
    with np.load(_FOLDER / 'oracle.npz') as stored:
        marker = f'{request.param}_'
        return {
            name.removeprefix(marker): torch.from_numpy(stored[name])
            for name in stored.files
            if name.startswith(marker)
        }


@pytest.fixture(scope='module')
def both() -> Oracle:
    """Return inputs and known answers of two requests."""
    with np.load(_FOLDER / 'oracle.npz') as stored:
        return {
            name.removeprefix('b2_'): torch.from_numpy(stored[name])
            for name in stored.files
            if name.startswith('b2_')
        }


def _context(model: Pi05, oracle: Oracle) -> tuple[torch.Tensor, torch.Tensor]:
    features = oracle['vit_features']
    cameras = features.view(3, -1, *features.shape[1:]).transpose(0, 1)
    return model.prefill(cameras, oracle['image_mask'], oracle['tokens'], oracle['token_mask'])


def _same(found: torch.Tensor, expected: torch.Tensor) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=_TOLERANCE)


def test_vit_gives_the_published_features(model: Pi05, oracle: Oracle) -> None:
    images = torch.cat([oracle[f'image{camera}_u8'] for camera in range(3)])
    _same(model.vit(images.float() / 255.0 * 2.0 - 1.0), oracle['vit_features'])


def test_plain_actions_are_the_published_ones(model: Pi05, oracle: Oracle) -> None:
    _same(model.action(*_context(model, oracle), oracle['noise']), oracle['actions_plain'])


def _weights(rows: list[npt.NDArray[np.float32]]) -> torch.Tensor:
    return torch.from_numpy(np.stack(rows))


def test_guided_actions_are_the_published_ones(model: Pi05, oracle: Oracle) -> None:
    batch = len(oracle['noise'])
    rtc = RtcInputs(
        previous=oracle['prev_chunk'],
        weights=_weights([prefix_weights(16, 4, 12, Schedule.LINEAR)] * batch),
        max_gain=5.0,
    )
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    _same(found, oracle['actions_guided_d4_end12_linear_beta5_identity'])


def test_hard_prefix_actions_are_the_published_ones(model: Pi05, oracle: Oracle) -> None:
    batch = len(oracle['noise'])
    rtc = RtcInputs(
        previous=oracle['prev_chunk'],
        weights=torch.zeros(batch, 16),
        frozen=(torch.arange(16) < 4).expand(batch, 16),
    )
    found = model.action(*_context(model, oracle), oracle['noise'], rtc)
    _same(found, oracle['actions_hard_prefix_d4'])
    assert torch.equal(found[:, :4], oracle['prev_chunk'][:, :4])


def test_requests_of_one_batch_are_tied_each_in_its_own_way(model: Pi05, both: Oracle) -> None:
    guided = RtcInputs(
        previous=both['prev_chunk'],
        weights=_weights([prefix_weights(16, 4, 12, Schedule.LINEAR), np.zeros(16, np.float32)]),
        frozen=torch.zeros(2, 16, dtype=torch.bool),
    )
    found = model.action(*_context(model, both), both['noise'], guided)
    _same(found[0], both['actions_guided_d4_end12_linear_beta5_identity'][0])
    _same(found[1], both['actions_plain'][1])


def test_hard_and_free_requests_share_a_batch(model: Pi05, both: Oracle) -> None:
    frozen = torch.zeros(2, 16, dtype=torch.bool)
    frozen[1, :4] = True
    rtc = RtcInputs(previous=both['prev_chunk'], weights=torch.zeros(2, 16), frozen=frozen)
    found = model.action(*_context(model, both), both['noise'], rtc)
    _same(found[0], both['actions_plain'][0])
    _same(found[1], both['actions_hard_prefix_d4'][1])


def _guided(both: Oracle, commitments: tuple[int, int], jacobian: Jacobian) -> RtcInputs:
    rows = [prefix_weights(16, steps, 12, Schedule.LINEAR) for steps in commitments]
    return RtcInputs(previous=both['prev_chunk'], weights=_weights(rows), jacobian=jacobian)


def test_true_jacobian_is_the_derivative_of_the_denoiser(both: Oracle) -> None:
    """One Euler step of one request, against differences of the actions themselves."""
    config = replace(oracle_config(), num_steps=1)
    one = load_pi05(_FOLDER, config)
    context = tuple(part[:1] for part in _context(one, both))
    noise, error = both['noise'][:1].double(), torch.zeros(1, 16, 32)
    error[0, 2, 5], error[0, 9, 0] = 1.0, -2.0
    # with one step an answer is the estimate of the actions, and the gain is its maximum
    plain = one.action(*context, noise)
    rtc = RtcInputs(
        previous=plain + error,
        weights=torch.ones(1, 16),
        max_gain=1.0,
        jacobian=Jacobian.VJP,
    )
    pulled = one.action(*context, noise, rtc) - plain
    step = 1e-2
    for row, column in ((2, 5), (9, 0), (0, 0), (15, 31)):
        moved = torch.zeros_like(noise)
        moved[0, row, column] = step
        above, below = (one.action(*context, noise + sign * moved) for sign in (1, -1))
        slope = ((above - below) * error).sum() / (2 * step)
        assert float(pulled[0, row, column]) == pytest.approx(float(slope), abs=2e-3)
    assert float((pulled - error).abs().max()) > 0.05  # the identity would be no good answer


def test_true_jacobian_works_inside_inference_mode(model: Pi05, both: Oracle) -> None:
    """Callers run in inference mode, whose tensors take part in no gradient by themselves."""
    rtc = _guided(both, (4, 2), Jacobian.VJP)
    expected = model.action(*_context(model, both), both['noise'], rtc)
    with torch.inference_mode():
        inside = replace(rtc, previous=rtc.previous.clone(), weights=rtc.weights.clone())
        found = model.action(*_context(model, both), both['noise'].clone(), inside)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert not expected.requires_grad


@pytest.mark.parametrize('jacobian', Jacobian)
def test_guided_requests_of_a_batch_are_as_alone(
    model: Pi05, both: Oracle, jacobian: Jacobian
) -> None:
    rtc = _guided(both, (7, 2), jacobian)
    together = model.action(*_context(model, both), both['noise'], rtc)
    for row in range(2):
        one = slice(row, row + 1)
        alone = model.action(
            *(part[one] for part in _context(model, both)),
            both['noise'][one],
            replace(rtc, previous=rtc.previous[one], weights=rtc.weights[one]),
        )
        _same(alone, together[one])


@pytest.mark.parametrize('jacobian', Jacobian)
def test_guidance_leaves_padded_columns_alone(both: Oracle, jacobian: Jacobian) -> None:
    """Whatever the leftover has behind the robot's joints, no row of the answer moves."""
    model = load_pi05(_FOLDER, replace(oracle_config(), joints=14))
    rtc = _guided(both, (4, 4), jacobian)
    other = replace(rtc, previous=rtc.previous.clone())
    other.previous[..., 14:] += 5.0
    context = _context(model, both)
    found, moved = (model.action(*context, both['noise'], ties) for ties in (rtc, other))
    assert torch.equal(found, moved)


def test_camera_that_is_left_out_is_as_one_that_is_missing(model: Pi05, both: Oracle) -> None:
    """Nothing attends to a missing camera, and it moves no position: empty ones cost nothing."""
    features = both['vit_features'].view(3, 2, 64, 64).transpose(0, 1)
    mask = torch.tensor([[True, True, False]] * 2)
    words = (both['tokens'], both['token_mask'])
    masked = model.action(*model.prefill(features, mask, *words), both['noise'])
    left_out = model.action(*model.prefill(features[:, :2], mask[:, :2], *words), both['noise'])
    _same(left_out, masked)


def test_action_before_fix_times_is_an_error() -> None:
    with torch.device('meta'):
        model = Pi05(oracle_config())
    with pytest.raises(RuntimeError, match='fix_times'):
        model.action(torch.empty(1), torch.empty(1), torch.empty(1, 16, 32))


def test_published_sizes_have_the_published_number_of_weights() -> None:
    with torch.device('meta'):
        model = Pi05(published_config())
    assert sum(weight.numel() for weight in model.parameters()) == pytest.approx(3.35e9, rel=0.01)


def test_sizes_that_do_not_share_a_cache_are_refused() -> None:
    sizes = {'hidden': 64, 'mlp': 128, 'heads': 8, 'kv_heads': 1, 'head_dim': 16}
    with pytest.raises(ValueError, match=r'layers = 3 .* 2'):
        Pi05Config(
            vision=oracle_config().vision,
            language=GemmaConfig(layers=2, **sizes),
            expert=GemmaConfig(layers=3, **sizes),
            vocabulary=8,
            horizon=16,
            action_width=32,
        )


def test_patches_that_do_not_tile_the_picture_are_refused() -> None:
    with pytest.raises(ValueError, match='do not tile'):
        VisionConfig(height=224, width=300, patch=32, hidden=64, layers=1, mlp=64, heads=4)
