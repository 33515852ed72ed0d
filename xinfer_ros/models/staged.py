# SPDX-License-Identifier: Apache-2.0
"""A π0.5 model over static slots: reads requests, keeps features and cache, writes actions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.adapter import frozen_steps, preserved_slot, write_sample
from xinfer_ros.models.captured import CapturedPi05
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.normalise import QuantileStatistics, normalise, unnormalise
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.rtc import Schedule, prefix_weights
from xinfer_ros.models.siglip import to_model_range
from xinfer_ros.models.tokenizer import Tokenizer, state_prompt

_WARM_UP_RUNS = 6  # graphs are optimised in their first calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """
    How a π0.5 model is used.

    :param statistics: quantiles of state and actions
    :param tokenizer: makes ids of prompts
    :param prompt_tokens: room for the prompt; a longer one is refused, never cut
    :param schedule: how the guidance weights fall behind the commitment
    :param max_gain: upper limit β of the guidance gain
    :param noise_scale: factor on the noise; 1 for every trained model
    :param clip_actions: clip answers to the quantiles; for random weights only
    :param capture: run single requests through graphs; pays for small models on a CPU
    """

    statistics: QuantileStatistics
    tokenizer: Tokenizer
    prompt_tokens: int
    schedule: Schedule = Schedule.LINEAR
    max_gain: float = 5.0
    noise_scale: float = 1.0
    clip_actions: bool = False
    capture: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _SlotState:
    """
    What a slot keeps between its stages; the first axis is the slot.

    :param features: ``(S, cameras, camera tokens, language width)``
    :param cache: ``(S, layers, 2, prefix, kv width)``
    :param present: ``(S, prefix)`` bool
    """

    features: Tensor
    cache: Tensor
    present: Tensor


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
        self._weight = model.action_in_proj.weight
        self._slots: SlotArrays | None = None
        self._state: _SlotState | None = None
        self._check()
        self._stages: Pi05 | CapturedPi05 = model
        if options.capture:
            cameras, tokens = len(contract.cameras), options.prompt_tokens
            self._stages = CapturedPi05(model, cameras, tokens, options.max_gain)

    def _check(self) -> None:
        config, dim = self._model.config, self.contract.action_dim
        for camera in self.contract.cameras:
            if (camera.height, camera.width) != (config.vision.height, config.vision.width):
                raise ConfigError(
                    f'camera {camera.name} is {camera.height}x{camera.width}, the model takes '
                    f'{config.vision.height}x{config.vision.width}'
                )
        joints = len(self._options.statistics.q01)
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

    @torch.inference_mode()
    def bind(self, slots: SlotArrays) -> None:
        """Take the slots and allocate features, cache and mask of each."""
        config, cameras = self._model.config, len(self.contract.cameras)
        if slots.actions.shape[1:] != (self.contract.horizon, self.contract.action_dim):
            raise ConfigError(
                f'slots hold actions of shape {slots.actions.shape[1:]}, the contract says '
                f'{(self.contract.horizon, self.contract.action_dim)}'
            )
        count, tokens = slots.num_slots, config.vision.num_tokens
        prefix = cameras * tokens + self._options.prompt_tokens
        language = config.language
        self._state = _SlotState(
            features=self._weight.new_zeros((count, cameras, tokens, language.hidden)),
            cache=self._weight.new_zeros((count, language.layers, 2, prefix, language.kv_width)),
            present=self._weight.new_zeros((count, prefix), dtype=torch.bool),
        )
        self._slots = slots

    @torch.inference_mode()
    def run(self, stage: Stage, slot_ids: Sequence[int]) -> None:
        """Run one stage of some requests and return when it is done."""
        if self._slots is None or self._state is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        ids = torch.tensor(slot_ids, dtype=torch.long, device=self._weight.device)
        if stage is Stage.VIT:
            self._vit(list(slot_ids), ids, self._slots, self._state)
        elif stage is Stage.PREFILL:
            self._prefill(list(slot_ids), ids, self._slots, self._state)
        else:
            self._action(list(slot_ids), ids, self._slots, self._state)

    @torch.inference_mode()
    def warm_up(self) -> None:
        """Run every stage on slot 0 a few times; leaves the slot as it was."""
        if self._slots is None or self._state is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        kept = (self._state.features, self._state.cache, self._state.present)
        before = [tensor[0].clone() for tensor in kept]
        with preserved_slot(self._slots, 0):
            write_sample(self._slots, 0, 'warm up')
            for _ in range(_WARM_UP_RUNS):
                for stage in Stage:
                    self.run(stage, [0])
        for tensor, saved in zip(kept, before, strict=True):
            tensor[0] = saved

    def _on_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self._weight.device)

    def _vit(self, slot_ids: list[int], ids: Tensor, slots: SlotArrays, state: _SlotState) -> None:
        pictures = [self._on_device(camera[slot_ids]) for camera in slots.images]
        stacked = torch.stack(pictures, dim=1).flatten(0, 1)  # request, then camera
        features = self._stages.vit(to_model_range(stacked, self._weight.dtype))
        state.features[ids] = features.view(len(slot_ids), -1, *features.shape[1:])

    def _prefill(
        self, slot_ids: list[int], ids: Tensor, slots: SlotArrays, state: _SlotState
    ) -> None:
        room = self._options.prompt_tokens
        tokens = np.zeros((len(slot_ids), room), np.int64)
        used = np.zeros((len(slot_ids), room), np.bool_)
        for row, slot in enumerate(slot_ids):
            prompt = self._prompt_ids(slots, slot)
            tokens[row, : len(prompt)] = prompt
            used[row, : len(prompt)] = True
        cache, present = self._stages.prefill(
            state.features[ids],
            self._on_device(slots.camera_present[slot_ids]),
            self._on_device(tokens),
            self._on_device(used),
        )
        state.cache[ids] = cache
        state.present[ids] = present

    def _prompt_ids(self, slots: SlotArrays, slot: int) -> list[int]:
        used, room = int(slots.instruction_bytes[slot]), self._options.prompt_tokens
        try:
            text = slots.instruction[slot, :used].tobytes().decode()
        except UnicodeDecodeError as error:
            raise Rejected(
                Reason.REJECTED_INSTRUCTION, f'the instruction is not UTF-8: {error}'
            ) from error
        state = normalise(slots.state[slot], self._options.statistics)
        ids = self._options.tokenizer.encode(state_prompt(text, state))
        if len(ids) > room:
            raise Rejected(
                Reason.REJECTED_INSTRUCTION,
                f'the prompt needs {len(ids)} tokens, {self.contract.name} has room for {room}; '
                f'shorten the instruction of {used} bytes',
            )
        return ids

    def _action(
        self, slot_ids: list[int], ids: Tensor, slots: SlotArrays, state: _SlotState
    ) -> None:
        chunk = self._stages.action(
            state.cache[ids],
            state.present[ids],
            self._on_device(self._noise(slots.seed[slot_ids])).to(self._weight.dtype),
            self._rtc(slot_ids, slots),
        )
        found = chunk[..., : self.contract.action_dim].float().cpu().numpy()
        statistics = self._options.statistics
        actions = unnormalise(found, statistics)
        if self._options.clip_actions:
            actions = np.clip(actions, statistics.q01, statistics.q99)
        for row, slot in enumerate(slot_ids):
            frozen = frozen_steps(slots, slot, self.contract.max_commitment_steps)
            actions[row, :frozen] = slots.leftover[slot, :frozen]
            slots.actions[slot] = actions[row]

    def _noise(self, seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """Return ``(B, H, action_width)``; a request's noise depends on its seed alone."""
        shape = (self._model.config.horizon, self._model.config.action_width)
        rows = [
            np.random.default_rng(int(seed)).standard_normal(shape, np.float32) for seed in seeds
        ]
        return np.stack(rows) * np.float32(self._options.noise_scale)

    def _rtc(self, slot_ids: list[int], slots: SlotArrays) -> RtcInputs | None:
        """Return the ties to the leftovers, None if no request of the batch has any."""
        config, dim = self._model.config, self.contract.action_dim
        previous = np.zeros((len(slot_ids), config.horizon, config.action_width), np.float32)
        weights = np.zeros((len(slot_ids), config.horizon), np.float32)
        for row, slot in enumerate(slot_ids):
            commitment = frozen_steps(slots, slot, self.contract.max_commitment_steps)
            if commitment == 0:
                continue
            end = min(int(slots.leftover_steps[slot]), config.horizon)
            previous[row, :, :dim] = normalise(slots.leftover[slot], self._options.statistics)
            weights[row] = prefix_weights(config.horizon, commitment, end, self._options.schedule)
        if not weights.any():
            return None
        dtype = self._weight.dtype
        return RtcInputs(
            previous=self._on_device(previous).to(dtype),
            weights=self._on_device(weights).to(dtype),
            max_gain=self._options.max_gain,
        )
