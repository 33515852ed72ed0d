# SPDX-License-Identifier: Apache-2.0
"""Small models of every family over slots, with options of choice, for the tests of models."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.adapter import Refusals
from xinfer_ros.models.aloha import aloha_statistics
from xinfer_ros.models.flow_model import FlowModel
from xinfer_ros.models.joined import prepare
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05_flow import Pi05Flow
from xinfer_ros.models.processor import Processor
from xinfer_ros.models.programs import prompt_rooms
from xinfer_ros.models.random_families import drawn_family
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions
from xinfer_ros.models.staged import ServingOptions, StagedVla
from xinfer_ros.models.tiny import seeded_pi05, tiny_config, tiny_contract, tiny_processor

from .filled_slots import empty_slots, write_request

Actions = npt.NDArray[np.float32]

TINY = ('tiny', 'tiny_smolvla', 'tiny_wall')
TIES = {
    'guided': RtcOptions(mode=RtcMode.GUIDED),
    'hard prefix': RtcOptions(mode=RtcMode.HARD_PREFIX),
    'none': RtcOptions(mode=RtcMode.NONE),
    'vjp': RtcOptions(mode=RtcMode.GUIDED, jacobian=Jacobian.VJP),
}


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a model over slots is made of, and several rooms for its prompts."""

    contract: ModelContract
    model: FlowModel
    processor: Processor
    rooms: tuple[int, ...]


def tiny_parts(name: str, device: str = 'cpu', dtype: torch.dtype = torch.float32) -> Parts:
    """Return the parts of one of ``TINY``; the weights are the same on every device."""
    if name == 'tiny':
        model = seeded_pi05(tiny_config(), 0).to(device)
        model.fix_times()  # what depends on the times is not narrowed
        prepare(model.to(dtype))
        processor = tiny_processor()
        return Parts(
            contract=tiny_contract(),
            model=Pi05Flow(model),
            processor=processor,
            rooms=prompt_rooms(processor.prompt_tokens),
        )
    drawn = drawn_family(name, ModelOptions(device='cpu', dtype='float32'))
    drawn.model.to(device, dtype).fix_times()
    return Parts(
        contract=drawn.contract,
        model=drawn.model,
        processor=drawn.processor,
        rooms=drawn.prompt_rooms,
    )


@dataclass(frozen=True, kw_only=True)
class Served:
    """A bound model and its slots."""

    model: StagedVla
    slots: SlotArrays

    def fill(self) -> None:
        """Write a request into every slot; odd ones are tied to a leftover."""
        self.slots.actions[:] = 0
        for slot in range(self.slots.num_slots):
            write_request(
                self.slots,
                slot,
                seed=slot,
                statistics=aloha_statistics(),
                leftover_steps=8 + slot if slot % 2 else 0,
                commitment_steps=2 + slot if slot % 2 else 0,
            )

    def run(
        self, stage: Stage, slot_ids: Sequence[int], states: Sequence[int], worker: int = 0
    ) -> Refusals:
        """Run one stage of some slots."""
        batch = Batch(slot_ids=tuple(slot_ids), state_ids=tuple(states), worker=worker)
        return self.model.run(stage, batch)

    def answers(
        self, slot_ids: Sequence[int], states: Sequence[int] | None = None, worker: int = 0
    ) -> Actions:
        """Run all stages of some slots as one batch; a slot has the state of its number."""
        for stage in Stage:
            refused = self.run(stage, slot_ids, states or slot_ids, worker)
            assert not refused
        return self.slots.actions[list(slot_ids)].copy()


@dataclass(frozen=True, kw_only=True)
class Serving:
    """
    How a model is served in a test.

    :param rtc: how chunks are tied
    :param plan: batches, workers and states
    :param capture: as in ``ServingOptions``
    :param roomy: with all rooms for prompts instead of the largest
    """

    rtc: RtcOptions = field(default_factory=RtcOptions)
    plan: LanePlan = field(
        default_factory=lambda: LanePlan(num_states=6, max_batch=(3, 3, 3), workers=(1, 1, 1))
    )
    capture: bool = True
    roomy: bool = False

    def start(self, parts: Parts, num_slots: int = 6) -> Served:
        """Return the model bound to filled slots."""
        options = ServingOptions(
            processor=parts.processor,
            rtc=self.rtc,
            capture=self.capture,
            prompt_rooms=parts.rooms if self.roomy else parts.rooms[-1:],
        )
        staged = StagedVla(parts.contract, parts.model, options)
        slots = empty_slots(staged.contract, num_slots)
        staged.bind(slots, self.plan)
        served = Served(model=staged, slots=slots)
        served.fill()
        return served


def same(found: Actions, expected: Actions, tolerance: float = 1e-5) -> None:
    """Assert that answers are equal but for rounding, and finite."""
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def random_like(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Return normal numbers of the same shape, type and device."""
    drawn = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed))
    return drawn.to(tensor)
