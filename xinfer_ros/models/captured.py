# SPDX-License-Identifier: Apache-2.0
"""What each stage of a model does with static memory, ready to be captured or traced."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from xinfer_ros.core.contract import CameraSpec
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.flow_model import FlowModel, FlowSizes
from xinfer_ros.models.programs import Recipe
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions
from xinfer_ros.models.staging import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureGroup:
    """
    Cameras next to each other whose pictures have one size, so that ViT takes them at once.

    :param name: of the input that holds their pictures, ``(B, cameras, height, width, 3)``
    :param cameras: their places in the contract
    :param height: rows of a picture [pixels]
    :param width: columns of a picture [pixels]
    """

    name: str
    cameras: range
    height: int
    width: int


def picture_groups(cameras: Iterable[CameraSpec]) -> tuple[PictureGroup, ...]:
    """Return the groups of a contract's cameras, in their order."""
    groups: list[PictureGroup] = []
    first = 0
    for (height, width), members in groupby(cameras, lambda spec: (spec.height, spec.width)):
        places = range(first, first + len(tuple(members)))
        name = f'pictures_{len(groups)}'
        groups.append(PictureGroup(name=name, cameras=places, height=height, width=width))
        first = places.stop
    return tuple(groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """
    What requests keep between their stages; the first axis ``S`` is the state.

    The last state belongs to no request: what runs at start writes there.

    :param features: ``(S, tokens of all cameras, language width)``
    :param cache: ``(S, layers, 2, prefix + H, kv width)``, the room behind the prefix is for the
        rows of a chunk
    :param marks: ``(S, prefix)`` int32, 0 where there is no token
    """

    features: Tensor
    cache: Tensor
    marks: Tensor

    @property
    def spare(self) -> int:
        """Return the id of the state that belongs to no request."""
        return len(self.marks) - 1


class CapturedVla:
    """
    The recipes of a model's programs.

    Each gathers what the requests of a batch have kept, by their state ids, and scatters what it
    adds. A stage of a request overwrites all of its state that a later stage reads, so nothing of
    an earlier request remains.

    :param model: with weights in place and times fixed
    :param sizes: for the contract of these cameras and the longest prompt
    :param cameras: of the contract
    :param rtc: how new chunks are tied to leftovers; without a mode, guided
    """

    def __init__(
        self, model: FlowModel, sizes: FlowSizes, cameras: tuple[CameraSpec, ...], rtc: RtcOptions
    ) -> None:
        self._model, self._sizes, self._rtc = model, sizes, rtc
        self._num_cameras = len(cameras)
        self.groups = picture_groups(cameras)

    @torch.no_grad()
    def allocate(self, num_states: int) -> RequestState:
        """Return empty states for so many requests, and one to spare."""
        sizes, weight, count = self._sizes, self._model.weight, num_states + 1
        rows = sizes.prefix_tokens + sizes.horizon
        return RequestState(
            features=weight.new_zeros((count, sizes.picture_tokens, sizes.language)),
            cache=weight.new_zeros((count, sizes.layers, 2, rows, sizes.kv_width)),
            marks=weight.new_zeros((count, sizes.prefix_tokens), dtype=torch.int32),
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
        """Return the recipe of ViT: the pictures of each group."""
        model = self._model

        def vit(features: Tensor, ids: Tensor, *pictures: Tensor) -> Tensor:
            found = [
                model.vit(model.pixels(group.flatten(0, 1))).reshape(
                    ids.shape[0], -1, features.shape[2]
                )
                for group in pictures
            ]
            return features.index_copy_(0, ids, torch.cat(found, dim=1))

        pictures = (
            Field(
                name=group.name,
                shape=(*ids.shape, len(group.cameras), group.height, group.width, 3),
                dtype=np.uint8,
            )
            for group in self.groups
        )
        return Recipe(function=vit, state=(state.features,), inputs=(ids, *pictures))

    def _prefill(self, state: RequestState, ids: Field, prompt_tokens: int) -> Recipe:
        """Return the recipe of Prefill: ``cameras``, prompt (``tokens``, ``used``), ``state``."""
        model, missing = self._model, self._sizes.prompt_tokens - prompt_tokens
        room_behind = missing + self._sizes.horizon

        def prefill(
            features: Tensor,
            cache: Tensor,
            marks: Tensor,
            ids: Tensor,
            cameras: Tensor,
            tokens: Tensor,
            used: Tensor,
            own: Tensor,
        ) -> Tensor:
            seen = features.index_select(0, ids)
            found, marked = model.prefill(seen, cameras, tokens, used, own.to(seen.dtype))
            cache.index_copy_(0, ids, torch.constant_pad_nd(found, (0, 0, 0, room_behind)))
            marked = torch.constant_pad_nd(marked.to(torch.int32), (0, missing))
            return marks.index_copy_(0, ids, marked)

        batch = ids.shape[0]
        room = (batch, prompt_tokens)
        return Recipe(
            function=prefill,
            state=(state.features, state.cache, state.marks),
            inputs=(
                ids,
                Field(name='cameras', shape=(batch, self._num_cameras), dtype=np.bool_, fill=1),
                Field(name='tokens', shape=room, dtype=np.int64),
                Field(name='used', shape=room, dtype=np.bool_, fill=1),
                Field(name='state', shape=(batch, self._sizes.state_width), dtype=np.float32),
            ),
        )

    def _action(self, state: RequestState, ids: Field, prompt_tokens: int) -> Recipe:
        """Return the recipe of Action: ``noise`` and ties to ``chunk`` ``(B, H, width)``."""
        model, sizes, rtc_inputs = self._model, self._sizes, self._rtc_inputs()
        length = sizes.prefix_tokens - sizes.prompt_tokens + prompt_tokens

        def action(
            cache: Tensor, marks: Tensor, ids: Tensor, noise: Tensor, *ties_and_chunk: Tensor
        ) -> Tensor:
            *ties, chunk = ties_and_chunk
            gathered = cache[:, :, :, : length + sizes.horizon].index_select(0, ids)
            marked = marks[:, :length].index_select(0, ids)
            return chunk.copy_(model.action(gathered, marked, noise, rtc_inputs(*ties)))

        rows = (*ids.shape, sizes.horizon, sizes.action_width)
        guided = self._mode is RtcMode.GUIDED
        return Recipe(
            function=action,
            state=(state.cache, state.marks),
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
            return RtcInputs(previous=previous, frozen=frozen, max_gain=rtc.max_gain)

        makers: dict[RtcMode, Callable[..., RtcInputs | None]] = {
            RtcMode.GUIDED: guided, RtcMode.HARD_PREFIX: hard, RtcMode.NONE: lambda: None,
        }  # fmt: skip
        return makers[self._mode]
