# SPDX-License-Identifier: Apache-2.0
"""Joined layers compute what the layers compute, in the memory that the layers had."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from xinfer_ros.models.expert import ExpertLayer
from xinfer_ros.models.gemma import (
    Attention,
    GatedMlp,
    GemmaConfig,
    joint_turn,
    rope_angles,
    rotate,
)
from xinfer_ros.models.joined import Joined, Prepared, prepare
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.siglip import SelfAttention, VisionConfig
from xinfer_ros.models.tiny import seeded_pi05, tiny_config, tiny_pi05
from xinfer_ros.models.turn import sum_of_products

SIZES = GemmaConfig(hidden=24, layers=1, mlp=40, heads=6, kv_heads=2, head_dim=8, qkv_bias=True)
PICTURES = VisionConfig(height=28, width=28, patch=14, hidden=24, layers=1, mlp=40, heads=3)


def drawn(*shape: int) -> Tensor:
    """Return standard normal numbers, the same for the same shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.fixture(params=['biased', 'plain', 'gated', 'vision'])
def module(request: pytest.FixtureRequest) -> Joined:
    """Return a module of each kind, with weights of its own."""
    torch.manual_seed(0)
    modules = {
        'biased': Attention(SIZES),
        'plain': Attention(replace(SIZES, qkv_bias=False)),
        'gated': GatedMlp(SIZES),
        'vision': SelfAttention(PICTURES),
    }
    return modules[request.param].requires_grad_(False)


def test_joined_layers_give_what_they_give_apart(module: Joined) -> None:
    x = drawn(5, 24)
    apart = module.joined(x)
    prepare(module)
    assert module.is_prepared
    torch.testing.assert_close(module.joined(x), apart, rtol=0, atol=1e-6)


def test_joining_keeps_names_and_numbers_and_copies_nothing(module: Joined) -> None:
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    prepare(module)
    after = module.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    held = {w.untyped_storage().data_ptr(): w.untyped_storage().nbytes() for w in after.values()}
    assert sum(held.values()) == sum(weight.nbytes for weight in before.values())


def test_weight_that_changes_in_place_changes_the_joined_layers(module: Joined) -> None:
    prepare(module)
    before = module.joined(drawn(5, 24))
    next(module.parameters()).mul_(2.0)
    assert not torch.equal(module.joined(drawn(5, 24)), before)


@pytest.mark.parametrize('assign', [False, True])
def test_loaded_weights_are_used_at_once(module: Joined, assign: bool) -> None:
    prepare(module)
    x, doubled = drawn(5, 24), {k: 2.0 * v for k, v in module.state_dict().items()}
    expected = 2.0 * module.joined(x)
    module.load_state_dict(doubled, assign=assign)
    torch.testing.assert_close(module.joined(x), expected, rtol=0, atol=1e-5)


def test_converted_weights_are_used_at_once(module: Joined) -> None:
    prepare(module)
    x, before = drawn(5, 24), module.joined(drawn(5, 24))
    module.double()
    torch.testing.assert_close(module.joined(x.double()).float(), before, rtol=0, atol=1e-5)


def test_modules_of_the_same_weights_share_them_when_joined() -> None:
    one, other, stranger = Attention(SIZES), Attention(SIZES), Attention(SIZES)
    other.load_state_dict(one.state_dict(), assign=True)
    together = torch.nn.ModuleList((one, other, stranger)).requires_grad_(False)
    before = [module.joined(drawn(5, 24)) for module in (one, other, stranger)]
    prepare(together)
    assert one.v_proj.weight.data_ptr() == other.v_proj.weight.data_ptr()
    for module, expected in zip((one, other, stranger), before, strict=True):
        torch.testing.assert_close(module.joined(drawn(5, 24)), expected, rtol=0, atol=1e-6)


def test_layers_of_different_inputs_stay_apart() -> None:
    attention = Attention(SIZES)
    attention.k_proj = torch.nn.Linear(7, SIZES.kv_width)
    prepare(attention)
    assert not attention.is_prepared
    assert attention.k_proj(drawn(2, 7)).shape == (2, SIZES.kv_width)


def test_layers_on_the_meta_device_are_not_taken_for_each_other() -> None:
    with torch.device('meta'):
        layers = torch.nn.ModuleList((ExpertLayer(SIZES), ExpertLayer(SIZES)))
    prepare(layers)
    weights = {id(w.untyped_storage()) for w in layers.state_dict(keep_vars=True).values()}
    assert len(weights) > 1
    assert layers[0].mlp.joined(torch.empty(3, 24, device='meta')).shape == (3, 80)


def test_joint_turn_is_that_of_every_head_and_leaves_values_alone() -> None:
    angles = rope_angles(torch.tensor([[0, 1, 2], [5, 6, 9]]), SIZES.head_dim)
    heads = drawn(2, 3, 10, 8)  # six of queries, two of keys, two of values
    turned = joint_turn(angles, SIZES)(heads.view(6, 80)).view(2, 3, 10, 8)
    expected = rotate(heads[:, :, :8].transpose(1, 2), angles).transpose(1, 2)
    torch.testing.assert_close(turned[:, :, :8], expected, rtol=0, atol=1e-6)
    assert torch.equal(turned[:, :, 8:], heads[:, :, 8:])


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_sums_of_mixed_types_are_the_same_with_gradients_and_without(dtype: torch.dtype) -> None:
    added, x, y = drawn(4, 3), drawn(4, 3).flip(0).to(dtype), drawn(3)
    with torch.no_grad():
        found = sum_of_products(added, x, y, dtype)
    assert found.dtype is dtype
    torch.testing.assert_close(found, (added + x.float() * y).to(dtype))
    with torch.enable_grad():
        assert torch.equal(sum_of_products(added, x, y, dtype), found)


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_tiny_model_is_prepared_as_it_is_served(dtype: str) -> None:
    model = tiny_pi05(ModelOptions(dtype=dtype))
    assert all(part.is_prepared for part in model.modules() if isinstance(part, Prepared))


def test_model_that_was_converted_answers_without_being_prepared_again() -> None:
    model = seeded_pi05(tiny_config(), 1)
    assert _answer(model.float()).allclose(_answer(_prepared(model)), rtol=0, atol=1e-5)


def _prepared(model: Pi05) -> Pi05:
    prepare(model)
    return model


def _answer(model: Pi05) -> Tensor:
    config = model.config
    features = drawn(1, 2, 3, config.language.hidden)
    words = torch.ones(1, 4, dtype=torch.long)
    context = model.prefill(features, torch.ones(1, 2, dtype=torch.bool), words, words > 0)
    return model.action(*context, drawn(1, config.horizon, config.action_width))
