# SPDX-License-Identifier: Apache-2.0
"""What each stage of a π0.5 model does with static memory, ready to be captured or traced."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from xinfer_ros.core.stage import Stage
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.programs import Recipe
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions
from xinfer_ros.models.siglip import to_model_range
from xinfer_ros.models.staging import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """
    What requests keep between their stages; the first axis ``S`` is the state.

    The last state belongs to no request: what runs at start writes there.

    :param features: ``(S, cameras, camera tokens, language width)``
    :param cache: ``(S, layers, 2, prefix + H, kv width)``, the room behind the prefix is for the
        rows of a chunk
    :param present: ``(S, prefix)`` bool
    """

    features: Tensor
    cache: Tensor
    present: Tensor

    @property
    def spare(self) -> int:
        """Return the id of the state that belongs to no request."""
        return len(self.present) - 1


class CapturedPi05:
    """
    The recipes of a π0.5 model's programs.

    Each gathers what the requests of a batch have kept, by their state ids, and scatters what it
    adds. A stage of a request overwrites all of its state that a later stage reads, so nothing of
    an earlier request remains.

    :param model: with weights in place and times fixed
    :param cameras: pictures a request
    :param prompt_tokens: longest prompt
    :param rtc: how new chunks are tied to leftovers; without a mode, guided
    """

    def __init__(self, model: Pi05, cameras: int, prompt_tokens: int, rtc: RtcOptions) -> None:
        self._model, self._rtc = model, rtc
        self._cameras, self._prompt_tokens = cameras, prompt_tokens

    @torch.no_grad()
    def allocate(self, num_states: int) -> RequestState:
        """Return empty states for so many requests, and one to spare."""
        config, weight, count = (
            self._model.config,
            self._model.action_in_proj.weight,
            num_states + 1,
        )
        size, language = config.vision, config.language
        black = weight.new_zeros((1, 3, size.height, size.width))
        camera_tokens = self._model.vit(black).shape[1]  # models may merge patches
        prefix = self._cameras * camera_tokens + self._prompt_tokens
        rows = prefix + config.horizon
        return RequestState(
            features=weight.new_zeros((count, self._cameras, camera_tokens, language.hidden)),
            cache=weight.new_zeros((count, language.layers, 2, rows, language.kv_width)),
            present=weight.new_zeros((count, prefix), dtype=torch.bool),
        )

    def recipe(self, state: RequestState, stage: Stage, batch: int, prompt_tokens: int) -> Recipe:
        """
        Return what a program does.

        :param state: where it finds and leaves what requests keep
        :param stage: the stage
        :param batch: number of requests
        :param prompt_tokens: room for the prompt of each; without effect in ViT
        """
        ids = Field(name='ids', shape=(batch,), dtype=np.int64, fill=state.spare)
        if stage is Stage.VIT:
            return self._vit(state, ids)
        if stage is Stage.PREFILL:
            return self._prefill(state, ids, prompt_tokens)
        return self._action(state, ids, prompt_tokens)

    def _vit(self, state: RequestState, ids: Field) -> Recipe:
        """Return the recipe of ViT: ``pictures`` ``(B, cameras, height, width, 3)`` uint8."""
        model, dtype, size = self._model, state.features.dtype, self._model.config.vision

        def vit(features: Tensor, ids: Tensor, pictures: Tensor) -> Tensor:
            images = to_model_range(pictures.flatten(0, 1), torch.float32).to(dtype)
            found = model.vit(images)
            return features.index_copy_(0, ids, found.view(ids.shape[0], -1, *found.shape[1:]))

        shape = (*ids.shape, self._cameras, size.height, size.width, 3)
        pictures = Field(name='pictures', shape=shape, dtype=np.uint8)
        return Recipe(function=vit, state=(state.features,), inputs=(ids, pictures))

    def _prefill(self, state: RequestState, ids: Field, prompt_tokens: int) -> Recipe:
        """Return the recipe of Prefill: ``cameras``, ``tokens`` and ``used``, as the model has."""
        model, missing = self._model, self._prompt_tokens - prompt_tokens
        room_behind = missing + model.config.horizon

        def prefill(
            features: Tensor,
            cache: Tensor,
            present: Tensor,
            ids: Tensor,
            cameras: Tensor,
            tokens: Tensor,
            used: Tensor,
        ) -> Tensor:
            found, seen = model.prefill(features.index_select(0, ids), cameras, tokens, used)
            cache.index_copy_(0, ids, torch.constant_pad_nd(found, (0, 0, 0, room_behind)))
            return present.index_copy_(0, ids, torch.constant_pad_nd(seen, (0, missing)))

        batch = ids.shape[0]
        room = (batch, prompt_tokens)
        return Recipe(
            function=prefill,
            state=(state.features, state.cache, state.present),
            inputs=(
                ids,
                Field(name='cameras', shape=(batch, self._cameras), dtype=np.bool_, fill=1),
                Field(name='tokens', shape=room, dtype=np.int64),
                Field(name='used', shape=room, dtype=np.bool_, fill=1),
            ),
        )

    def _action(self, state: RequestState, ids: Field, prompt_tokens: int) -> Recipe:
        """Return the recipe of Action: ``noise`` and ties to ``chunk`` ``(B, H, width)``."""
        model, config = self._model, self._model.config
        length = state.present.shape[1] - self._prompt_tokens + prompt_tokens
        rtc_inputs, horizon = self._rtc_inputs(), config.horizon

        def action(
            cache: Tensor, present: Tensor, ids: Tensor, noise: Tensor, *ties_and_chunk: Tensor
        ) -> Tensor:
            *ties, chunk = ties_and_chunk
            gathered = cache[:, :, :, : length + horizon].index_select(0, ids)
            seen = present[:, :length].index_select(0, ids)
            return chunk.copy_(model.action(gathered, seen, noise, rtc_inputs(*ties)))

        rows = (*ids.shape, horizon, config.action_width)
        guided = self._mode is RtcMode.GUIDED
        return Recipe(
            function=action,
            state=(state.cache, state.present),
            inputs=(
                ids,
                Field(name='noise', shape=rows, dtype=np.float32),
                *self._tie_fields(rows),
            ),
            outputs=(Field(name='chunk', shape=rows, dtype=np.float32),),
            differentiates=guided and self._rtc.jacobian is Jacobian.VJP,
        )

    @property
    def _mode(self) -> RtcMode:
        return RtcMode.GUIDED if self._rtc.mode is None else self._rtc.mode

    def _tie_fields(self, rows: tuple[int, ...]) -> tuple[Field, ...]:
        """Return the fields of the mode's ties, in the order that ``_rtc_inputs`` takes."""
        if self._mode is RtcMode.NONE:
            return ()
        previous = Field(name='previous', shape=rows, dtype=np.float32)
        weights = Field(name='weights', shape=rows[:2], dtype=np.float32)
        frozen = Field(name='frozen', shape=rows[:2], dtype=np.bool_)
        return (previous, weights if self._mode is RtcMode.GUIDED else frozen)

    def _rtc_inputs(self) -> Callable[..., RtcInputs | None]:
        """Return what makes a model's ties of the tensors of ``_tie_fields``."""
        rtc = self._rtc

        def guided(previous: Tensor, weights: Tensor) -> RtcInputs:
            return RtcInputs(
                previous=previous, weights=weights, max_gain=rtc.max_gain, jacobian=rtc.jacobian
            )

        def hard(previous: Tensor, frozen: Tensor) -> RtcInputs:
            none = torch.zeros_like(previous[..., 0])
            return RtcInputs(previous=previous, weights=none, frozen=frozen, max_gain=rtc.max_gain)

        makers: dict[RtcMode, Callable[..., RtcInputs | None]] = {
            RtcMode.GUIDED: guided, RtcMode.HARD_PREFIX: hard, RtcMode.NONE: lambda: None,
        }  # fmt: skip
        return makers[self._mode]
