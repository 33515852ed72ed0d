# SPDX-License-Identifier: Apache-2.0
"""A π0.5 model over static slots: reads requests, keeps features and cache, writes actions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Rejected
from xinfer_ros.models.adapter import Refusals, frozen_steps, preserved_slot, write_sample
from xinfer_ros.models.captured import CapturedPi05, RequestState
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.processor import Processor
from xinfer_ros.models.programs import Programs, Recipe, Recorder, prompt_rooms
from xinfer_ros.models.rtc import RtcOptions
from xinfer_ros.models.ties import Ties
from xinfer_ros.models.traced import Direct, Traces


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """
    How a π0.5 model is used.

    :param processor: between robot units and model space
    :param rtc: how new chunks are tied to leftovers
    :param noise_scale: factor on the noise; 1 for every trained model
    :param capture: run requests through graphs; None: on CUDA. On a CPU it pays for small models
    :param prompt_rooms: rooms for prompts, ascending, the last of the processor's; a batch takes
        the smallest that fits. None for steps of 64 [tokens]
    """

    processor: Processor
    rtc: RtcOptions = field(default_factory=RtcOptions)
    noise_scale: float = 1.0
    capture: bool | None = None
    prompt_rooms: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """
    What a model is given and makes in ``bind``.

    :param slots: where requests lie
    :param state: what they keep between their stages
    :param programs: the stages at every size of the plan
    :param prompt_tokens: ``(S,)`` length of the prompt of each state's request
    """

    slots: SlotArrays
    state: RequestState
    programs: Programs
    prompt_tokens: npt.NDArray[np.int32]


class StagedPi05:
    """
    A staged model around ``Pi05``.

    :param contract: cameras of the model's picture size, joints of the statistics
    :param model: with weights in place and times fixed
    :param options: how it is used
    :raises ConfigError: if contract, model and statistics do not fit together
    """

    def __init__(self, contract: ModelContract, model: Pi05, options: ServingOptions) -> None:
        self.contract = contract
        self._model = model
        self._options = options
        self._bound: _Bound | None = None
        self._check()
        self._ties = Ties(
            processor=options.processor,
            options=options.rtc,
            horizon=contract.horizon,
            action_width=model.config.action_width,
            max_commitment_steps=contract.max_commitment_steps,
        )
        longest = options.processor.prompt_tokens
        self._rooms = options.prompt_rooms or prompt_rooms(longest)
        self._captured = CapturedPi05(model, len(contract.cameras), longest, options.rtc)
        self._recorder = _recorder(model.action_in_proj.weight.device, options.capture)

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs that have been captured or traced so far."""
        return self._recorder.num_recorded

    def _check(self) -> None:
        config, dim = self._model.config, self.contract.action_dim
        for camera in self.contract.cameras:
            if (camera.height, camera.width) != (config.vision.height, config.vision.width):
                raise ConfigError(
                    f'camera {camera.name} is {camera.height}x{camera.width}, the model takes '
                    f'{config.vision.height}x{config.vision.width}'
                )
        joints = self._options.processor.action_dim
        if joints != dim or dim > config.action_width:
            raise ConfigError(
                f'{dim} joints with statistics of {joints}, the model has room for '
                f'{config.action_width}'
            )
        if self.contract.horizon != config.horizon:
            raise ConfigError(
                f'the contract has a horizon of {self.contract.horizon}, '
                f'the model {config.horizon}'
            )

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Take the slots, allocate what requests keep, and make every program of the plan."""
        if slots.actions.shape[1:] != (self.contract.horizon, self.contract.action_dim):
            raise ConfigError(
                f'slots hold actions of shape {slots.actions.shape[1:]}, the contract says '
                f'{(self.contract.horizon, self.contract.action_dim)}'
            )
        self._bound = None  # its graphs hold memory
        state = self._captured.allocate(plan.num_states)

        def recipe(stage: Stage, batch: int, room: int) -> Recipe:
            return self._captured.recipe(state, stage, batch, room)

        self._bound = _Bound(
            slots=slots,
            state=state,
            programs=Programs(plan, self._rooms, self._recorder, recipe),
            prompt_tokens=np.zeros(state.spare + 1, np.int32),
        )

    def warm_up(self) -> None:
        """Run every program, and every stage on slot 0; leaves slots and states as they were."""
        bound = self._ready()
        bound.programs.run_all()
        with preserved_slot(bound.slots, 0):
            write_sample(bound.slots, 0, 'warm up')
            for stage in Stage:
                self.run(stage, Batch(slot_ids=(0,), state_ids=(bound.state.spare,)))

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """Run one stage of some requests and return when it is done."""
        bound = self._ready()
        if stage is Stage.VIT:
            self._vit(batch, bound)
        elif stage is Stage.PREFILL:
            return self._prefill(batch, bound)
        else:
            self._action(batch, bound)
        return {}

    def _ready(self) -> _Bound:
        if self._bound is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        return self._bound

    def _vit(self, batch: Batch, bound: _Bound) -> None:
        program = bound.programs.find(Stage.VIT, len(batch.slot_ids), 0, batch.worker)
        program.inputs['ids'][:] = batch.state_ids
        pictures = program.inputs['pictures']
        for row, slot in enumerate(batch.slot_ids):
            for camera, images in enumerate(bound.slots.images):
                pictures[row, camera] = images[slot]
        program.run()

    def _prefill(self, batch: Batch, bound: _Bound) -> Refusals:
        slot_ids, (prompts, refused) = list(batch.slot_ids), self._prompts(batch, bound)
        longest = max(len(prompt) for prompt in prompts)
        program = bound.programs.find(Stage.PREFILL, len(slot_ids), longest, batch.worker)
        tokens, used = program.inputs['tokens'], program.inputs['used']
        program.inputs['ids'][:] = batch.state_ids
        program.inputs['cameras'][:] = bound.slots.camera_present[slot_ids]
        tokens[:], used[:] = 0, False
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt)] = prompt
            used[row, : len(prompt)] = True
        bound.prompt_tokens[list(batch.state_ids)] = [len(prompt) for prompt in prompts]
        program.run()
        return refused

    def _prompts(self, batch: Batch, bound: _Bound) -> tuple[list[Sequence[int]], Refusals]:
        """Return every member's prompt, and who has none: its row is computed and thrown away."""
        prompts: list[Sequence[int]] = []
        refused: Refusals = {}
        for slot in batch.slot_ids:
            try:
                prompts.append(self._options.processor.prompt(bound.slots, slot))
            except Rejected as refusal:
                refused[slot] = refusal
                prompts.append(())
        return prompts, refused

    def _action(self, batch: Batch, bound: _Bound) -> None:
        slots, slot_ids = bound.slots, list(batch.slot_ids)
        longest = int(bound.prompt_tokens[list(batch.state_ids)].max())
        program = bound.programs.find(Stage.ACTION, len(slot_ids), longest, batch.worker)
        inputs, ties = program.inputs, self._ties.arrays(slots, slot_ids)
        inputs['ids'][:] = batch.state_ids
        inputs['noise'][:] = self._noise(slots.seed[slot_ids])
        for name in ('previous', 'weights', 'frozen'):
            if name in inputs:  # as the mode of real-time chunking needs
                inputs[name][:] = getattr(ties, name)
        program.run()
        chunk = program.outputs['chunk'][..., : self.contract.action_dim]
        for row, slot in enumerate(slot_ids):
            actions = self._options.processor.actions(chunk[row], slots, slot)
            frozen = frozen_steps(slots, slot, self.contract.max_commitment_steps)
            actions[:frozen] = slots.leftover[slot, :frozen]
            slots.actions[slot] = actions

    def _noise(self, seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """Return ``(B, H, action_width)``; a request's noise depends on its seed alone."""
        shape = (self._model.config.horizon, self._model.config.action_width)
        rows = [
            np.random.default_rng(int(seed)).standard_normal(shape, np.float32) for seed in seeds
        ]
        return np.stack(rows) * np.float32(self._options.noise_scale)


def _recorder(device: torch.device, capture: bool | None) -> Recorder:
    """Return what makes stages repeatable on a device."""
    on_cuda = device.type == 'cuda'
    if not (on_cuda if capture is None else capture):
        return Direct(device)
    if not on_cuda:
        return Traces()
    from xinfer_ros.models.cuda_graphs import CudaGraphs  # nothing of it runs elsewhere

    return CudaGraphs(device)
