# SPDX-License-Identifier: Apache-2.0
"""The captured graphs answer what the model itself answers."""

import torch

from xinfer_ros.models.captured import CapturedPi05
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.tiny import seeded_pi05, tiny_config

CAMERAS, TOKENS, GAIN = 3, 64, 5.0


def both() -> tuple[Pi05, CapturedPi05]:
    """Return a model and its captured form."""
    model = seeded_pi05(tiny_config(), 3)
    return model, CapturedPi05(model, CAMERAS, TOKENS, GAIN)


@torch.inference_mode()
def test_a_single_request_gets_the_same_chunk_from_the_graphs():
    """Every stage, with other inputs than those of the capture, and with guidance."""
    model, captured = both()
    config = model.config
    torch.manual_seed(7)
    images = torch.rand(CAMERAS, 3, config.vision.height, config.vision.width) * 2 - 1
    features = captured.vit(images)
    torch.testing.assert_close(features, model.vit(images), rtol=0, atol=1e-5)

    mask = torch.tensor([[True, False, True]])
    tokens = torch.randint(0, 250, (1, TOKENS))
    used = torch.arange(TOKENS)[None] < 40
    cache, present = captured.prefill(features[None], mask, tokens, used)
    cache_2, present_2 = model.prefill(features[None], mask, tokens, used)
    torch.testing.assert_close(cache, cache_2, rtol=0, atol=1e-5)
    assert torch.equal(present, present_2)

    noise = torch.randn(1, config.horizon, config.action_width)
    weights = torch.linspace(1, 0, config.horizon)[None]
    rtc = RtcInputs(previous=torch.randn_like(noise), weights=weights, max_gain=GAIN)
    for ties in (None, rtc):
        ours, theirs = (m.action(cache, present, noise, ties) for m in (captured, model))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@torch.inference_mode()
def test_a_batch_goes_through_the_model_itself():
    """A batch of two gives two rows, the same as alone."""
    model, captured = both()
    config = model.config
    images = torch.rand(2 * CAMERAS, 3, config.vision.height, config.vision.width) * 2 - 1
    features = captured.vit(images)
    assert len(features) == 2 * CAMERAS
    torch.testing.assert_close(
        features[:CAMERAS], captured.vit(images[:CAMERAS]), rtol=0, atol=1e-5
    )
