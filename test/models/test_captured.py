# SPDX-License-Identifier: Apache-2.0
"""The recipes of a π0.5 model do with static memory what the model itself does."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.captured import CapturedPi05, RequestState
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.programs import Programs, Recipe
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions
from xinfer_ros.models.siglip import to_model_range
from xinfer_ros.models.tiny import seeded_pi05, tiny_config
from xinfer_ros.models.traced import Traces

from .staged_models import random_like

CAMERAS, TOKENS, STATES = 3, 64, 5
TIES = {
    'guided': RtcOptions(mode=RtcMode.GUIDED),
    'unset': RtcOptions(max_gain=3.0),
    'hard prefix': RtcOptions(mode=RtcMode.HARD_PREFIX),
    'none': RtcOptions(mode=RtcMode.NONE),
    'vjp': RtcOptions(mode=RtcMode.GUIDED, jacobian=Jacobian.VJP),
}


@dataclass(frozen=True, kw_only=True)
class Captured:
    """Programs of a model, and the states on which they work."""

    rtc: RtcOptions
    state: RequestState
    programs: Programs

    @classmethod
    def of(cls, model: Pi05, rtc: RtcOptions) -> 'Captured':
        """Return programs for batches of up to three."""
        captured = CapturedPi05(model, CAMERAS, TOKENS, rtc)
        state = captured.allocate(STATES)

        def recipe(stage: Stage, batch: int, room: int) -> Recipe:
            return captured.recipe(state, stage, batch, room)

        plan = LanePlan(num_states=STATES, max_batch=(3, 3, 3))
        programs = Programs(plan, (32, TOKENS), Traces(), recipe)
        return cls(rtc=rtc, state=state, programs=programs)

    def spoil(self) -> None:
        """Fill the states with what an earlier request might have left at worst."""
        self.state.features.fill_(torch.nan)
        self.state.cache.fill_(torch.nan)
        self.state.present.fill_(True)

    def run(self, stage: Stage, ids: list[int], room: int = 0, **inputs: Tensor) -> Tensor:
        """Run a stage on inputs; returns its chunk, or what its states hold then."""
        program = self.programs.find(stage, len(ids), room, 0)
        for name, value in {'ids': torch.tensor(ids), **inputs}.items():
            program.inputs[name][:] = value.numpy()
        program.run()
        if stage is Stage.ACTION:
            return torch.from_numpy(program.outputs['chunk'].copy())
        kept = self.state.features if stage is Stage.VIT else self.state.cache
        return kept[ids].clone()


@pytest.fixture(scope='module')
def model() -> Pi05:
    """Return one tiny model."""
    return seeded_pi05(tiny_config(), 3)


@pytest.fixture(scope='module', params=TIES.values(), ids=TIES)
def captured(model: Pi05, request: pytest.FixtureRequest) -> Captured:
    """Return its programs in every mode of real-time chunking, one after the other."""
    return Captured.of(model, request.param)


def _close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def _pictures(model: Pi05, batch: int) -> Tensor:
    size = model.config.vision
    shape = (batch, CAMERAS, size.height, size.width, 3)
    drawn = np.random.default_rng(batch).integers(0, 256, shape, np.uint8)
    return torch.from_numpy(drawn)


def _prompts(batch: int, room: int) -> dict[str, Tensor]:
    """Return prompts of different lengths, the first with a camera missing."""
    cameras = torch.ones(batch, CAMERAS, dtype=torch.bool)
    cameras[0, 1] = False
    generator = torch.Generator().manual_seed(batch)
    return {
        'cameras': cameras,
        'tokens': torch.randint(0, 250, (batch, room), generator=generator),
        'used': torch.arange(room) < torch.arange(20, 20 + batch)[:, None],
    }


def _chunk_inputs(model: Pi05, batch: int, rtc: RtcOptions) -> dict[str, Tensor]:
    config = model.config
    rows = torch.empty(batch, config.horizon, config.action_width)
    inputs = {'noise': random_like(rows, 1)}
    if rtc.mode is not RtcMode.NONE:
        inputs['previous'] = random_like(rows, 2)
        tied = torch.arange(config.horizon) < torch.arange(3, 3 + batch)[:, None]
        tied[0] = False
        hard = rtc.mode is RtcMode.HARD_PREFIX
        inputs |= {'frozen': tied} if hard else {'weights': tied * 0.7}
    return inputs


def _ties(inputs: dict[str, Tensor], rtc: RtcOptions) -> RtcInputs | None:
    if 'previous' not in inputs:
        return None
    previous = inputs['previous']
    return RtcInputs(
        previous=previous,
        weights=inputs.get('weights', torch.zeros_like(previous[..., 0])),
        frozen=inputs.get('frozen'),
        max_gain=rtc.max_gain,
        jacobian=rtc.jacobian,
    )


@pytest.mark.parametrize('batch', [1, 2, 3])
def test_stages_of_any_batch_give_what_the_model_gives(
    model: Pi05, captured: Captured, batch: int
) -> None:
    """On states that held anything but numbers before."""
    rtc, ids = captured.rtc, [4, 0, 2][:batch]
    captured.spoil()
    pictures, prompts = _pictures(model, batch), _prompts(batch, TOKENS)
    found = captured.run(Stage.VIT, ids, pictures=pictures)
    images = to_model_range(pictures.flatten(0, 1), torch.float32)
    features = model.vit(images).view(batch, CAMERAS, -1, model.config.language.hidden)
    _close(found, features)

    cache, present = model.prefill(features, *prompts.values())
    length = present.shape[1]
    found = captured.run(Stage.PREFILL, ids, TOKENS, **prompts)
    _close(found[:, :, :, :length], cache)
    assert torch.equal(captured.state.present[ids], present)

    inputs = _chunk_inputs(model, batch, rtc)
    chunk = captured.run(Stage.ACTION, ids, TOKENS, **inputs)
    _close(chunk, model.action(cache, present, inputs['noise'], _ties(inputs, rtc)))
    others = [state for state in range(STATES) if state not in ids]
    assert captured.state.cache[others].isnan().all()


def test_requests_of_short_prompts_join_a_batch_with_more_room(model: Pi05) -> None:
    """Prefill left rubbish of another request behind neither prompt."""
    captured = Captured.of(model, TIES['none'])
    captured.run(Stage.VIT, [1, 3], pictures=_pictures(model, 2))
    roomy = _prompts(2, TOKENS)
    captured.run(Stage.PREFILL, [1, 3], TOKENS, **roomy)
    inputs = _chunk_inputs(model, 2, captured.rtc)
    expected = captured.run(Stage.ACTION, [1, 3], TOKENS, **inputs)
    features = captured.state.features.clone()
    captured.spoil()
    captured.state.features.copy_(features)
    short = {name: value[:, :32] for name, value in roomy.items()}
    captured.run(Stage.PREFILL, [1, 3], 32, **short)
    _close(captured.run(Stage.ACTION, [1, 3], TOKENS, **inputs), expected)
    _close(captured.run(Stage.ACTION, [1, 3], 32, **inputs), expected)


def test_programs_at_start_work_on_a_state_that_no_request_has(model: Pi05) -> None:
    captured = Captured.of(model, TIES['none'])
    assert captured.state.spare == STATES
    captured.spoil()
    captured.programs.run_all()
    assert captured.state.cache[:STATES].isnan().all()
    assert captured.state.cache[STATES].isfinite().all()
    assert captured.state.features[:STATES].isnan().all()
