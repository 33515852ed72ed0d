# SPDX-License-Identifier: Apache-2.0
"""A model in three stages whose chunks are integrated from noise: what every family gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.rtc import Jacobian


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSizes:
    """
    What a request keeps between its stages, and what goes in and out.

    :param picture_tokens: tokens of all cameras together
    :param prompt_tokens: room for the prompt; with less of it, the prefix has as many tokens less
    :param prefix_tokens: tokens of the prefix, with all of that room
    :param language: width of a token in the language model
    :param layers: of the cache
    :param kv_width: width of the keys of a token
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of a row in model space
    :param state_width: width of the state in model space; 0 if the prompt tells it
    """

    picture_tokens: int
    prompt_tokens: int
    prefix_tokens: int
    language: int
    layers: int
    kv_width: int
    horizon: int
    action_width: int
    state_width: int


class FlowModel(Protocol):
    """
    A model in three stages, see ``Pi05Flow``, ``SmolVla`` and ``Wall``.

    All but ``sizes`` is captured into CUDA graphs and traced on a CPU: pure tensor code that takes
    the batch from shapes (never by ``len``, which is a number of Python's), never asks the device
    for a value and makes no tensor of Python's numbers. The stages share no scratch memory.
    """

    @property
    def weight(self) -> Tensor:
        """Return a weight: features and cache have its device and type."""
        ...

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FlowSizes:
        """
        Return the sizes for a contract.

        :param prompt_tokens: room for the prompt
        :raises ValueError: if a camera's picture does not fit the model
        """
        ...

    def pixels(self, images: Tensor) -> Tensor:
        """
        Return pictures as ``vit`` takes them, ``(N, 3, height, width)``.

        :param images: ``(N, height, width, 3)`` uint8 RGB
        """
        ...

    def vit(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, language)`` for pictures of one size, of any cameras together."""
        ...

    def prefill(
        self,
        features: Tensor,
        image_mask: Tensor,
        tokens: Tensor,
        token_mask: Tensor,
        state: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """
        Return the cache of the prefix.

        :param features: ``(B, picture_tokens, language)`` from ``vit``, camera by camera
        :param image_mask: ``(B, cameras)`` bool, False where a camera is missing
        :param tokens: ``(B, T)`` token ids of the prompt, padded on the right
        :param token_mask: ``(B, T)`` bool, False for padding
        :param state: ``(B, state_width)`` model space, padded with zeros
        :returns: cache ``(B, layers, 2, prefix, kv_width)``, and marks ``(B, prefix)`` of any
            integer type or bool: 0 where there is no token, and what ``action`` needs elsewhere
        """
        ...

    def action(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """
        Return chunks ``(B, H, action_width)`` float32 in model space.

        :param cache: ``(B, layers, 2, prefix + H, kv_width)`` from ``prefill``, with room for the
            rows of the chunk behind it, which may be overwritten
        :param marks: ``(B, prefix)`` int32 from ``prefill``
        :param noise: ``(B, H, action_width)``, standard normal
        :param rtc: ties to the leftovers, None for none
        """
        ...


Integrated = Callable[[Tensor, Tensor, Tensor, RtcInputs | None], Tensor]


def differentiable(
    integrated: Integrated, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None
) -> Tensor:
    """Run an integration, outside inference mode where the guidance needs the true Jacobian."""
    if rtc is None or rtc.jacobian is Jacobian.IDENTITY:
        with torch.inference_mode():
            return integrated(cache, marks, noise, rtc)
    # What was made in inference mode can not take part in a gradient, but its copies can.
    with torch.inference_mode(False), torch.no_grad():
        return integrated(cache.clone(), marks.clone(), noise.clone(), rtc.cloned())
