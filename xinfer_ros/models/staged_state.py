# SPDX-License-Identifier: Apache-2.0
"""A model whose prefix holds the state, over static slots."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Rejected
from xinfer_ros.models.adapter import Refusals, frozen_steps, preserved_slot, write_sample
from xinfer_ros.models.family import FamilySizes, StateVla
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.processor import Processor, Rows
from xinfer_ros.models.rtc import RtcOptions
from xinfer_ros.models.ties import Ties


class StateProcessor(Processor, Protocol):
    """A processor that gives the state beside the prompt."""

    def state(self, slots: SlotArrays, slot: int) -> Rows:
        """Return a request's state in model space, ``(action_dim,)`` float32."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """
    How a model is used.

    :param processor: between robot units and model space
    :param rtc: how new chunks are tied to leftovers, with a mode
    :param noise_scale: factor on the noise; 1 for every trained model
    """

    processor: StateProcessor
    rtc: RtcOptions = field(default_factory=RtcOptions)
    noise_scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """
    The slots, and what a request keeps between its stages; the first axis ``S`` is the state.

    :param slots: inputs and answers
    :param features: ``(S, tokens of all cameras, language width)``
    :param cache: ``(S, layers, 2, prefix, kv width)``
    :param marks: ``(S, prefix)`` int32, what Prefill gives beside the cache
    """

    slots: SlotArrays
    features: Tensor
    cache: Tensor
    marks: Tensor


class StagedStateVla:
    """
    A staged model around a ``StateVla``; one call for each stage of a batch, no graphs.

    :param contract: cameras of the model's picture sizes, joints of the statistics
    :param model: with weights in place and times fixed
    :param options: how it is used
    :param like: a weight of the model, for its device and type
    :raises ConfigError: if contract, model and statistics do not fit together
    """

    def __init__(
        self, contract: ModelContract, model: StateVla, options: StateOptions, like: Tensor
    ) -> None:
        self.contract = contract
        self._model, self._options, self._like = model, options, like
        self._bound: _Bound | None = None
        self._sizes = self._checked()
        self._ties = Ties(
            processor=options.processor,
            options=options.rtc,
            horizon=contract.horizon,
            action_width=self._sizes.action_width,
            max_commitment_steps=contract.max_commitment_steps,
        )

    def _checked(self) -> FamilySizes:
        processor, dim = self._options.processor, self.contract.action_dim
        try:
            sizes = self._model.sizes(self.contract, processor.prompt_tokens)
        except ValueError as error:
            raise ConfigError(f'{self.contract.name}: {error}') from error
        room = min(sizes.action_width, sizes.state_width)
        if processor.action_dim != dim or dim > room:
            raise ConfigError(
                f'{dim} joints with statistics of {processor.action_dim}, the model has room for '
                f'{room}'
            )
        if self.contract.horizon != sizes.horizon:
            raise ConfigError(
                f'the contract has a horizon of {self.contract.horizon}, the model {sizes.horizon}'
            )
        return sizes

    @torch.inference_mode()
    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Take the slots and allocate features, cache and marks of each request under way."""
        if slots.actions.shape[1:] != (self.contract.horizon, self.contract.action_dim):
            raise ConfigError(
                f'slots hold actions of shape {slots.actions.shape[1:]}, the contract says '
                f'{(self.contract.horizon, self.contract.action_dim)}'
            )
        sizes, count = self._sizes, plan.num_states
        self._bound = _Bound(
            slots=slots,
            features=self._like.new_zeros((count, sizes.picture_tokens, sizes.language)),
            cache=self._like.new_zeros(
                (count, sizes.layers, 2, sizes.prefix_tokens, sizes.kv_width)
            ),
            marks=self._like.new_zeros((count, sizes.prefix_tokens), dtype=torch.int32),
        )

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """Run one stage of some requests and return when it is done."""
        if self._bound is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        slot_ids = list(batch.slot_ids)
        ids = torch.tensor(batch.state_ids, dtype=torch.long, device=self._like.device)
        with torch.inference_mode():
            if stage is Stage.VIT:
                self._vit(slot_ids, ids, self._bound)
                return {}
            if stage is Stage.PREFILL:
                return self._prefill(slot_ids, ids, self._bound)
            self._action(slot_ids, ids, self._bound)
            return {}

    def warm_up(self) -> None:
        """Run every stage once on slot 0; leaves the slot as it was."""
        if self._bound is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        with preserved_slot(self._bound.slots, 0):
            write_sample(self._bound.slots, 0, 'warm up')
            for stage in self.contract.stages:
                self.run(stage, Batch(slot_ids=(0,), state_ids=(0,)))

    def _on_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self._like.device)

    def _vit(self, slot_ids: list[int], ids: Tensor, bound: _Bound) -> None:
        found = []
        for camera in bound.slots.images:  # sizes may differ, so camera by camera
            pictures = self._on_device(camera[slot_ids])
            found.append(self._model.vit(self._model.pixels(pictures)))
        bound.features[ids] = torch.cat(found, dim=1)

    def _prefill(self, slot_ids: list[int], ids: Tensor, bound: _Bound) -> Refusals:
        processor, slots = self._options.processor, bound.slots
        tokens = np.zeros((len(slot_ids), processor.prompt_tokens), np.int64)
        used = np.zeros_like(tokens, np.bool_)
        states = np.zeros((len(slot_ids), self._sizes.state_width), np.float32)
        refused: Refusals = {}
        for row, slot in enumerate(slot_ids):
            try:
                prompt = processor.prompt(slots, slot)
            except Rejected as refusal:
                refused[slot] = refusal  # its row is computed on padding, and thrown away
                continue
            tokens[row, : len(prompt)], used[row, : len(prompt)] = prompt, True
            states[row, : self.contract.action_dim] = processor.state(slots, slot)
        bound.cache[ids], marks = self._model.prefill(
            bound.features[ids],
            self._on_device(slots.camera_present[slot_ids]),
            self._on_device(tokens),
            self._on_device(used),
            self._on_device(states).to(self._like.dtype),
        )
        bound.marks[ids] = marks.to(torch.int32)
        return refused

    def _action(self, slot_ids: list[int], ids: Tensor, bound: _Bound) -> None:
        slots = bound.slots
        chunk = self._model.action(
            bound.cache[ids],
            bound.marks[ids],
            self._on_device(self._noise(slots.seed[slot_ids])),
            self._rtc(slots, slot_ids),
        )
        found = chunk[..., : self.contract.action_dim].cpu().numpy()
        for row, slot in enumerate(slot_ids):
            actions = self._options.processor.actions(found[row], slots, slot)
            frozen = frozen_steps(slots, slot, self.contract.max_commitment_steps)
            actions[:frozen] = slots.leftover[slot, :frozen]
            slots.actions[slot] = actions

    def _rtc(self, slots: SlotArrays, slot_ids: list[int]) -> RtcInputs | None:
        """Return the ties of a batch, None if no request is tied."""
        ties, options = self._ties.arrays(slots, slot_ids), self._options.rtc
        frozen = ties.frozen.any()
        if not frozen and not ties.weights.any():
            return None
        return RtcInputs(
            previous=self._on_device(ties.previous),
            weights=self._on_device(ties.weights),
            frozen=self._on_device(ties.frozen) if frozen else None,
            max_gain=options.max_gain,
            jacobian=options.jacobian,
        )

    def _noise(self, seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """Return ``(B, H, action_width)``; a request's noise depends on its seed alone."""
        shape = (self._sizes.horizon, self._sizes.action_width)
        rows = [
            np.random.default_rng(int(seed)).standard_normal(shape, np.float32) for seed in seeds
        ]
        return np.stack(rows) * np.float32(self._options.noise_scale)
