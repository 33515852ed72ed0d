# SPDX-License-Identifier: Apache-2.0
"""The recipes of a model do with static memory what the model itself does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.contract import CameraSpec
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.captured import CapturedVla, RequestState, picture_groups
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.flow_model import FlowModel, FlowSizes
from xinfer_ros.models.programs import Programs, Recipe, Recorder
from xinfer_ros.models.rtc import RtcMode, RtcOptions
from xinfer_ros.models.traced import Direct, Traces
from xinfer_ros.models.wall import Wall

from .staged_models import TIES, TINY, random_like, tiny_parts

TOKENS, STATES = 64, 5
ALL_TIES = {**TIES, 'unset': RtcOptions(max_gain=3.0)}


@dataclass(frozen=True, kw_only=True)
class Small:
    """A tiny model of a family, for its own cameras and prompts of up to 64 tokens."""

    model: FlowModel
    cameras: tuple[CameraSpec, ...]
    sizes: FlowSizes

    def features(self, pictures: list[Tensor]) -> Tensor:
        """Return what ViT makes of each camera's pictures, camera by camera."""
        return torch.cat([self.model.vit(self.model.pixels(each)) for each in pictures], dim=1)


@dataclass(frozen=True, kw_only=True)
class Captured:
    """Programs of a model, and the states on which they work."""

    small: Small
    rtc: RtcOptions
    state: RequestState
    programs: Programs

    @classmethod
    def of(cls, small: Small, rtc: RtcOptions, recorder: Recorder) -> 'Captured':
        """Return programs for batches of up to three."""
        captured = CapturedVla(small.model, small.sizes, small.cameras, rtc)
        state = captured.allocate(STATES)

        def recipe(stage: Stage, batch: int, room: int) -> Recipe:
            return captured.recipe(state, stage, batch, room)

        plan = LanePlan(num_states=STATES, max_batch=(3, 3, 3))
        programs = Programs(plan, (32, TOKENS), recorder, recipe)
        return cls(small=small, rtc=rtc, state=state, programs=programs)

    def spoil(self) -> None:
        """Fill the states with what an earlier request might have left at worst."""
        self.state.features.fill_(torch.nan)
        self.state.cache.fill_(torch.nan)
        self.state.marks.fill_(9)

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


@pytest.fixture(scope='module', params=TINY)
def small(request: pytest.FixtureRequest) -> Small:
    """Return one tiny model of each family."""
    parts = tiny_parts(request.param)
    sizes = parts.model.sizes(parts.contract, TOKENS)
    return Small(model=parts.model, cameras=parts.contract.cameras, sizes=sizes)


@pytest.fixture(scope='module', params=ALL_TIES.values(), ids=ALL_TIES)
def captured(small: Small, request: pytest.FixtureRequest) -> Captured:
    """Return its programs in every mode of real-time chunking, one after the other."""
    return Captured.of(small, request.param, Traces())


def _close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def _pictures(small: Small, batch: int) -> list[Tensor]:
    """Return the pictures of each camera, ``(B, height, width, 3)``."""
    generator = np.random.default_rng(batch)
    shapes = [(batch, camera.height, camera.width, 3) for camera in small.cameras]
    return [torch.from_numpy(generator.integers(0, 256, shape, np.uint8)) for shape in shapes]


def _grouped(small: Small, pictures: list[Tensor]) -> dict[str, Tensor]:
    return {
        group.name: torch.stack([pictures[camera] for camera in group.cameras], dim=1)
        for group in picture_groups(small.cameras)
    }


def _prompts(small: Small, batch: int, room: int) -> dict[str, Tensor]:
    """Return prompts of different lengths and states, the first with a camera missing."""
    cameras = torch.ones(batch, len(small.cameras), dtype=torch.bool)
    cameras[0, 0] = False
    generator = torch.Generator().manual_seed(batch)
    tokens = torch.randint(0, 250, (batch, room), generator=generator)
    if isinstance(small.model, Wall):  # whose prompts say where pictures and state are
        tokens[:, 3:13] = small.model.config.image_token
        tokens[:, 15] = small.model.config.state_token
    return {
        'cameras': cameras,
        'tokens': tokens,
        'used': torch.arange(room) < torch.arange(20, 20 + batch)[:, None],
        'state': torch.randn(batch, small.sizes.state_width, generator=generator),
    }


def _chunk_inputs(small: Small, batch: int, rtc: RtcOptions) -> dict[str, Tensor]:
    sizes = small.sizes
    rows = torch.empty(batch, sizes.horizon, sizes.action_width)
    inputs = {'noise': random_like(rows, 1)}
    if rtc.mode is not RtcMode.NONE:
        inputs['previous'] = random_like(rows, 2)
        tied = torch.arange(sizes.horizon) < torch.arange(3, 3 + batch)[:, None]
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
def test_stages_of_any_batch_give_what_the_model_gives(captured: Captured, batch: int) -> None:
    """On states that held anything but numbers before."""
    small, rtc, ids = captured.small, captured.rtc, [4, 0, 2][:batch]
    captured.spoil()
    pictures, prompts = _pictures(small, batch), _prompts(small, batch, TOKENS)
    found = captured.run(Stage.VIT, ids, **_grouped(small, pictures))
    features = small.features(pictures)
    _close(found, features)

    cache, marks = small.model.prefill(features, *prompts.values())
    length = marks.shape[1]
    found = captured.run(Stage.PREFILL, ids, TOKENS, **prompts)
    _close(found[:, :, :, :length], cache)
    assert torch.equal(captured.state.marks[ids], marks.to(torch.int32))

    inputs = _chunk_inputs(small, batch, rtc)
    chunk = captured.run(Stage.ACTION, ids, TOKENS, **inputs)
    ties = _ties(inputs, rtc)
    _close(chunk, small.model.action(cache, captured.state.marks[ids], inputs['noise'], ties))
    others = [state for state in range(STATES) if state not in ids]
    assert captured.state.cache[others].isnan().all()


def test_requests_of_short_prompts_join_a_batch_with_more_room(small: Small) -> None:
    """Prefill left rubbish of another request behind neither prompt."""
    captured = Captured.of(small, TIES['none'], Direct(torch.device('cpu')))
    captured.run(Stage.VIT, [1, 3], **_grouped(small, _pictures(small, 2)))
    roomy = _prompts(small, 2, TOKENS)
    captured.run(Stage.PREFILL, [1, 3], TOKENS, **roomy)
    inputs = _chunk_inputs(small, 2, captured.rtc)
    expected = captured.run(Stage.ACTION, [1, 3], TOKENS, **inputs)
    features = captured.state.features.clone()
    captured.spoil()
    captured.state.features.copy_(features)
    short = {
        name: roomy[name][:, :32] if name in ('tokens', 'used') else roomy[name] for name in roomy
    }
    captured.run(Stage.PREFILL, [1, 3], 32, **short)
    _close(captured.run(Stage.ACTION, [1, 3], TOKENS, **inputs), expected)
    _close(captured.run(Stage.ACTION, [1, 3], 32, **inputs), expected)


def test_programs_at_start_work_on_a_state_that_no_request_has(small: Small) -> None:
    captured = Captured.of(small, TIES['none'], Direct(torch.device('cpu')))
    assert captured.state.spare == STATES
    captured.spoil()
    captured.programs.run_all()
    assert captured.state.cache[:STATES].isnan().all()
    assert captured.state.cache[STATES].isfinite().all()
    assert captured.state.features[:STATES].isnan().all()


# They ask the device for a value, or bring numbers of Python's to it.
_UNFIT = {
    'tensor', 'as_tensor', 'from_numpy', 'item', 'tolist', '__bool__', '__int__', '__float__',
    'nonzero', 'masked_select', 'sort', 'argsort', 'unique',
}  # fmt: skip


class _Watch(TorchFunctionMode):
    """Notes what a CUDA graph can't hold, on the device that has no memory."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        elsewhere = isinstance(out, Tensor) and out.device.type != 'meta'
        if elsewhere or func.__name__ in _UNFIT:
            self.found.add(func.__name__)
        return out


@pytest.mark.parametrize('rtc', TIES.values(), ids=TIES)
@pytest.mark.parametrize('name', TINY)
def test_recipes_keep_to_what_a_cuda_graph_can_hold(name: str, rtc: RtcOptions) -> None:
    """No value is asked for, and nothing is made elsewhere; told without a device at hand."""
    parts = tiny_parts(name, 'meta')
    sizes = parts.model.sizes(parts.contract, TOKENS)
    captured = CapturedVla(parts.model, sizes, parts.contract.cameras, rtc)
    state = captured.allocate(STATES)
    for stage in Stage:
        recipe = captured.recipe(state, stage, 2, TOKENS)
        tensors = [
            torch.from_numpy(np.empty(field.shape, field.dtype)).to('meta')
            for field in (*recipe.inputs, *recipe.outputs)
        ]
        with _Watch() as watch, torch.no_grad():
            recipe.function(*recipe.state, *tensors)
        assert not watch.found, stage


def test_watch_finds_what_no_graph_can_hold() -> None:
    x = torch.ones(3, device='meta')
    with _Watch() as watch:
        assert torch.tensor([1.0, 2.0], device=x.device).shape == (2,)
        assert torch.argsort(x).shape == torch.arange(3).shape
    assert watch.found == {'tensor', 'argsort', 'arange'}


def test_neighbours_with_pictures_of_one_size_are_a_group() -> None:
    widths = (320, 288, 288, 320)
    cameras = [
        CameraSpec(name=f'camera_{index}', height=224, width=width)
        for index, width in enumerate(widths)
    ]
    groups = picture_groups(cameras)
    assert [(group.cameras, group.width) for group in groups] == [
        (range(1), 320), (range(1, 3), 288), (range(3, 4), 320)
    ]  # fmt: skip
    assert len({group.name for group in groups}) == 3
