# SPDX-License-Identifier: Apache-2.0
"""A model over static slots: reads requests, keeps features and cache, writes actions."""

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
from xinfer_ros.models.captured import CapturedVla, RequestState
from xinfer_ros.models.flow_model import FlowModel, FlowSizes
from xinfer_ros.models.processor import Processor, Rows
from xinfer_ros.models.programs import Programs, Recipe, Recorder, prompt_rooms
from xinfer_ros.models.rtc import Jacobian, RtcOptions
from xinfer_ros.models.ties import Ties
from xinfer_ros.models.traced import Direct, Traces

Prompt = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """
    How a model is used.

    :param processor: between robot units and model space
    :param rtc: how new chunks are tied to leftovers
    :param noise_scale: factor on the noise; 1 for every trained model
    :param capture: run requests through graphs; None: on CUDA, but with the true Jacobian. On a
        CPU it pays for small models
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


class StagedVla:
    """
    A staged model around the functions of any family.

    :param contract: cameras of the model's picture sizes, joints of the statistics
    :param model: with weights in place and times fixed
    :param options: how it is used
    :raises ConfigError: if contract, model and statistics do not fit together
    """

    def __init__(self, contract: ModelContract, model: FlowModel, options: ServingOptions) -> None:
        self.contract = contract
        self._options = options
        self._bound: _Bound | None = None
        self._sizes = _checked_sizes(contract, model, options.processor)
        self._ties = Ties(
            processor=options.processor,
            options=options.rtc,
            horizon=contract.horizon,
            action_width=self._sizes.action_width,
            max_commitment_steps=contract.max_commitment_steps,
        )
        self._rooms = options.prompt_rooms or prompt_rooms(options.processor.prompt_tokens)
        self._captured = CapturedVla(model, self._sizes, contract.cameras, options.rtc)
        self._recorder = _recorder(model.weight.device, options)

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs that have been captured or traced so far."""
        return self._recorder.num_recorded

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
        for group in self._captured.groups:
            pictures = program.inputs[group.name]
            for row, slot in enumerate(batch.slot_ids):
                for column, camera in enumerate(group.cameras):
                    pictures[row, column] = bound.slots.images[camera][slot]
        program.run()

    def _prefill(self, batch: Batch, bound: _Bound) -> Refusals:
        slot_ids, (told, refused) = list(batch.slot_ids), self._told(batch, bound)
        longest = max(len(prompt) for prompt, _ in told)
        program = bound.programs.find(Stage.PREFILL, len(slot_ids), longest, batch.worker)
        tokens, used, states = (program.inputs[name] for name in ('tokens', 'used', 'state'))
        program.inputs['ids'][:] = batch.state_ids
        program.inputs['cameras'][:] = bound.slots.camera_present[slot_ids]
        tokens[:], used[:], states[:] = 0, False, 0
        for row, (prompt, state) in enumerate(told):
            tokens[row, : len(prompt)] = prompt
            used[row, : len(prompt)] = True
            states[row, : len(state)] = state
        bound.prompt_tokens[list(batch.state_ids)] = [len(prompt) for prompt, _ in told]
        program.run()
        return refused

    def _told(self, batch: Batch, bound: _Bound) -> tuple[list[tuple[Prompt, Rows]], Refusals]:
        """Return everybody's prompt and state, and who has none: that row is thrown away."""
        processor, nothing = self._options.processor, np.zeros(0, np.float32)
        told: list[tuple[Prompt, Rows]] = []
        refused: Refusals = {}
        for slot in batch.slot_ids:
            try:
                prompt = processor.prompt(bound.slots, slot)
                told.append((prompt, processor.state(bound.slots, slot)))
            except Rejected as refusal:
                refused[slot] = refusal
                told.append(((), nothing))
        return told, refused

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
        shape = (self._sizes.horizon, self._sizes.action_width)
        rows = [
            np.random.default_rng(int(seed)).standard_normal(shape, np.float32) for seed in seeds
        ]
        return np.stack(rows) * np.float32(self._options.noise_scale)


def _checked_sizes(contract: ModelContract, model: FlowModel, processor: Processor) -> FlowSizes:
    """
    Return the sizes of a model for a contract.

    :raises ConfigError: if contract, model and statistics do not fit together
    """
    try:
        sizes = model.sizes(contract, processor.prompt_tokens)
    except ValueError as error:
        raise ConfigError(f'{contract.name}: {error}') from error
    room = min(sizes.action_width, sizes.state_width or sizes.action_width)
    if processor.action_dim != contract.action_dim or contract.action_dim > room:
        raise ConfigError(
            f'{contract.action_dim} joints with statistics of {processor.action_dim}, the model '
            f'has room for {room}'
        )
    if contract.horizon != sizes.horizon:
        raise ConfigError(
            f'the contract has a horizon of {contract.horizon}, the model {sizes.horizon}'
        )
    return sizes


def _recorder(device: torch.device, options: ServingOptions) -> Recorder:
    """Return what makes stages repeatable on a device."""
    on_cuda, capture = device.type == 'cuda', options.capture
    if capture is None:
        capture = on_cuda and options.rtc.jacobian is Jacobian.IDENTITY
    if not capture:
        return Direct(device)
    if not on_cuda:
        return Traces()
    from xinfer_ros.models.cuda_graphs import CudaGraphs  # nothing of it runs elsewhere

    return CudaGraphs(device)
