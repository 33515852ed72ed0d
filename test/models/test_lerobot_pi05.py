# SPDX-License-Identifier: Apache-2.0
"""The same random weights through LeRobot's own π0.5 and through ours; needs LeRobot."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.models.actions import ActionSpace, relative_joints
from xinfer_ros.models.checkpoint import published_name
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.lerobot_files import read_steps
from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.tokenizer import state_prompt

_theirs = pytest.importorskip(
    'lerobot.policies.pi05.modeling_pi05', reason='LeRobot is not installed'
)
_config = pytest.importorskip('lerobot.policies.pi05.configuration_pi05')
_rtc = pytest.importorskip('lerobot.policies.rtc')

_TOLERANCE = 1e-5
_VOCABULARY, _HORIZON, _WIDTH, _TOKENS = 512, 16, 32, 24
_EDGE, _PATCH, _VISION = 56, 14, 32
_HEADS = {'heads': 4, 'kv_heads': 1, 'head_dim': 16}
_SIZES = Pi05Config(
    vision=VisionConfig(
        height=_EDGE, width=_EDGE, patch=_PATCH, hidden=_VISION, layers=2, mlp=64, heads=2
    ),
    language=GemmaConfig(hidden=48, layers=3, mlp=96, **_HEADS),
    expert=GemmaConfig(hidden=32, layers=3, mlp=64, **_HEADS),
    vocabulary=_VOCABULARY,
    horizon=_HORIZON,
    action_width=_WIDTH,
)


def _decoder(variant: str) -> Any:
    """Return our sizes as LeRobot describes a decoder."""
    ours = _SIZES.language if variant == 'gemma_2b' else _SIZES.expert
    return SimpleNamespace(
        width=ours.hidden,
        depth=ours.layers,
        mlp_dim=ours.mlp,
        num_heads=ours.heads,
        num_kv_heads=ours.kv_heads,
        head_dim=ours.head_dim,
    )


@pytest.fixture(scope='module')
def theirs() -> Any:
    """Return LeRobot's model in our sizes, which it does not offer, with random weights."""
    vlm, expert = _theirs.PaliGemmaForConditionalGenerationWithPiGemma, _theirs.PiGemmaForCausalLM

    def small_vlm(config: Any) -> Any:
        config.image_token_index = config.image_token_id = _VOCABULARY - 1
        config.text_config.vocab_size = _VOCABULARY
        config.projection_dim = config.vision_config.projection_dim = _SIZES.language.hidden
        vision = config.vision_config
        vision.hidden_size, vision.intermediate_size = _VISION, _SIZES.vision.mlp
        vision.num_hidden_layers, vision.num_attention_heads = 2, 2
        vision.patch_size = _PATCH
        return vlm(config=config)

    def small_expert(config: Any) -> Any:
        config.vocab_size = _VOCABULARY
        return expert(config=config)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_theirs, 'get_gemma_config', _decoder)
        patch.setattr(_theirs, 'PaliGemmaForConditionalGenerationWithPiGemma', small_vlm)
        patch.setattr(_theirs, 'PiGemmaForCausalLM', small_expert)
        model = _theirs.PI05Pytorch(
            _config.PI05Config(
                chunk_size=_HORIZON,
                n_action_steps=_HORIZON,
                image_resolution=(_EDGE, _EDGE),
                rtc_training_max_delay=6,
                device='cpu',
            )
        )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            fan_in = weight[0].numel() if weight.ndim > 1 else 25
            weight.normal_(0.0, fan_in**-0.5, generator=generator)
    return model.eval()


@pytest.fixture(scope='module')
def ours(theirs: Any) -> Pi05:
    """Return our model with LeRobot's weights."""
    stored = theirs.state_dict()
    with torch.device('meta'):
        model = Pi05(_SIZES)
    weights = {name: stored[published_name(name)] for name in model.state_dict()}
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False).eval()
    model.fix_times()
    return model


@pytest.fixture(scope='module')
def request_pair() -> Any:
    """Return two requests, one without its second camera, with prompts of different lengths."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([[9], [_TOKENS]])
    return SimpleNamespace(
        images=[torch.rand(2, 3, _EDGE, _EDGE, generator=generator) * 2 - 1 for _ in range(2)],
        image_mask=torch.tensor([[True, True], [True, False]]),
        tokens=torch.randint(0, _VOCABULARY - 1, (2, _TOKENS), generator=generator),
        token_mask=torch.arange(_TOKENS) < lengths,
        noise=torch.randn(2, _HORIZON, _WIDTH, generator=generator),
        previous=torch.randn(2, _HORIZON, _WIDTH, generator=generator),
    )


def _their_actions(model: Any, asked: Any, rtc: Any, **options: Any) -> torch.Tensor:
    model.rtc_processor, model.config.rtc_config = None, rtc
    if rtc is not None:
        model.rtc_processor = _rtc.RTCProcessor(rtc, trained_mode_supported=True)
    with torch.no_grad():
        return model.sample_actions(
            asked.images,
            list(asked.image_mask.unbind(1)),
            asked.tokens,
            asked.token_mask,
            noise=asked.noise,
            **options,
        )


def _our_actions(model: Pi05, asked: Any, rtc: RtcInputs | None) -> torch.Tensor:
    features = model.vit(torch.cat(asked.images))
    by_camera = features.view(2, 2, *features.shape[1:]).transpose(0, 1)
    context = model.prefill(by_camera, asked.image_mask, asked.tokens, asked.token_mask)
    return model.action(*context, asked.noise, rtc)


def _same(found: torch.Tensor, expected: torch.Tensor) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=_TOLERANCE)


def test_plain_actions_are_lerobots(theirs: Any, ours: Pi05, request_pair: Any) -> None:
    expected = _their_actions(theirs, request_pair, None)
    _same(_our_actions(ours, request_pair, None), expected)


def test_guided_actions_are_lerobots(theirs: Any, ours: Pi05, request_pair: Any) -> None:
    """LeRobot takes the identity as Jacobian, and its ``execution_horizon`` is our end."""
    settings = _rtc.RTCConfig(mode='guided', max_guidance_weight=5.0, execution_horizon=12)
    expected = _their_actions(
        theirs,
        request_pair,
        settings,
        inference_delay=4,
        prev_chunk_left_over=request_pair.previous,
        execution_horizon=12,
    )
    row = prefix_weights(_HORIZON, 4, 12, Schedule.LINEAR)
    ties = RtcInputs(previous=request_pair.previous, weights=torch.from_numpy(np.stack([row] * 2)))
    _same(_our_actions(ours, request_pair, ties), expected)


def test_hard_prefix_actions_are_lerobots(theirs: Any, ours: Pi05, request_pair: Any) -> None:
    expected = _their_actions(
        theirs,
        request_pair,
        _rtc.RTCConfig(mode='trained'),
        inference_delay=4,
        prev_chunk_left_over=request_pair.previous,
    )
    ties = RtcInputs(
        previous=request_pair.previous,
        weights=torch.zeros(2, _HORIZON),
        frozen=(torch.arange(_HORIZON) < 4).expand(2, _HORIZON),
    )
    _same(_our_actions(ours, request_pair, ties), expected)


_DIM = 5
_GENERATOR = np.random.default_rng(2)
_LOW = _GENERATOR.uniform(-2, -1, _DIM).astype(np.float32)
_HIGH = _GENERATOR.uniform(1, 2, _DIM).astype(np.float32)
_STATISTICS = {
    'q01': _LOW, 'q99': _HIGH, 'min': _LOW, 'max': _HIGH, 'q10': _LOW, 'q90': _HIGH,
    'mean': (_LOW + _HIGH) / 2, 'std': _HIGH - _LOW,
}  # fmt: skip
_MODES = ('QUANTILES', 'QUANTILE10', 'MIN_MAX', 'MEAN_STD', 'IDENTITY')


def _their_normaliser(mode: str) -> Any:
    processor = pytest.importorskip('lerobot.processor')
    features = {
        'observation.state': {'type': 'STATE', 'shape': [_DIM]},
        'action': {'type': 'ACTION', 'shape': [_DIM]},
    }
    return processor.NormalizerProcessorStep(
        features=features,
        norm_map={'STATE': mode, 'ACTION': mode},
        stats={'observation.state': _STATISTICS, 'action': _STATISTICS},
    )


def _our_statistics(mode: str, folder: Path) -> Any:
    """Write LeRobot's normaliser down and read it as a folder's."""
    step = _their_normaliser(mode)
    save_file(
        {name: array.numpy() for name, array in step.state_dict().items()},
        folder / 'arrays.safetensors',
    )
    entry = {
        'registry_name': 'normalizer_processor',
        'config': step.get_config(),
        'state_file': 'arrays.safetensors',
    }
    (folder / 'steps.json').write_text(json.dumps({'steps': [entry]}))
    return read_steps(folder / 'steps.json', {'normalizer_processor'}).statistics(
        'normalizer_processor', 'observation.state'
    )


@pytest.mark.parametrize('mode', _MODES)
def test_normalised_state_and_prompt_are_lerobots(mode: str, tmp_path: Path) -> None:
    prepare = pytest.importorskip('lerobot.policies.pi05.processor_pi05')
    keys = pytest.importorskip('lerobot.lerobot_types').TransitionKey
    states = _GENERATOR.uniform(-3, 3, (8, _DIM)).astype(np.float32)
    transition = {
        keys.OBSERVATION: {'observation.state': torch.from_numpy(states)},
        keys.COMPLEMENTARY_DATA: {'task': [f' fold_the\ntowel {row}' for row in range(8)]},
    }
    transition = _their_normaliser(mode)(transition)
    expected = transition[keys.OBSERVATION]['observation.state'].numpy()
    statistics = _our_statistics(mode, tmp_path)
    np.testing.assert_allclose(statistics.normalise(states), expected, atol=1e-6)
    told = prepare.Pi05PrepareStateTokenizerProcessorStep()(transition)
    for row in range(8):
        text = state_prompt(f' fold_the\ntowel {row}', statistics.normalise(states[row]))
        assert text == told[keys.COMPLEMENTARY_DATA]['task'][row]


@pytest.mark.parametrize('mode', _MODES)
def test_leftover_is_anchored_anew_as_lerobot_does(mode: str, tmp_path: Path) -> None:
    relative = pytest.importorskip('lerobot.policies.rtc.relative')
    processor = pytest.importorskip('lerobot.processor')
    names = ['waist', 'elbow', 'left_Gripper', 'wrist', 'tool']
    step = processor.RelativeActionsProcessorStep(
        enabled=True, exclude_joints=['gripper'], action_names=names
    )
    leftover = _GENERATOR.uniform(-2, 2, (9, _DIM)).astype(np.float32)
    state = _GENERATOR.uniform(-2, 2, _DIM).astype(np.float32)
    expected = relative.reanchor_relative_rtc_prefix(
        torch.from_numpy(leftover), torch.from_numpy(state), step, _their_normaliser(mode), 'cpu'
    )
    space = ActionSpace(
        statistics=_our_statistics(mode, tmp_path),
        relative=relative_joints(names, ('gripper',), _DIM),
    )
    found = space.to_model(leftover, state)
    np.testing.assert_allclose(found, expected.numpy().reshape(found.shape), atol=1e-6)
