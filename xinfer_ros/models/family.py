# SPDX-License-Identifier: Apache-2.0
"""What the models whose prefix holds the state have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.rtc import Jacobian


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySizes:
    """
    What a request keeps between its stages, and what goes in and out.

    :param picture_tokens: tokens of all cameras together
    :param prefix_tokens: tokens of the prefix: what the cache holds
    :param language: width of a token in the language model
    :param layers: of the cache
    :param kv_width: width of the keys of a token
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of a row in model space
    :param state_width: width of the state in model space
    """

    picture_tokens: int
    prefix_tokens: int
    language: int
    layers: int
    kv_width: int
    horizon: int
    action_width: int
    state_width: int


class StateVla(Protocol):
    """A model in three stages whose prefix holds the state, see ``SmolVla`` and ``Wall``."""

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FamilySizes:
        """
        Return the sizes for a contract.

        :param prompt_tokens: room for the prompt
        :raises ValueError: if a camera's picture does not fit the model
        """
        ...

    def pixels(self, images: Tensor) -> Tensor:
        """
        Return pictures as ``vit`` takes them.

        :param images: ``(N, height, width, 3)`` uint8 RGB
        """
        ...

    def vit(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, language)`` for pictures of one size."""
        ...

    def prefill(
        self,
        features: Tensor,
        image_mask: Tensor,
        tokens: Tensor,
        token_mask: Tensor,
        state: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return cache ``(B, layers, 2, prefix, kv_width)`` and marks ``(B, prefix)``."""
        ...

    def action(
        self, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """Return chunks ``(B, H, action_width)`` float32."""
        ...


Integrated = Callable[[Tensor, Tensor, Tensor, RtcInputs | None], Tensor]


def differentiable(
    integrated: Integrated, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None
) -> Tensor:
    """Run an integration, outside inference mode where the guidance needs the true Jacobian."""
    if rtc is None or rtc.jacobian is Jacobian.IDENTITY:
        with torch.inference_mode():
            return integrated(cache, present, noise, rtc)
    # What was made in inference mode can not take part in a gradient, but its copies can.
    with torch.inference_mode(False), torch.no_grad():
        return integrated(cache.clone(), present.clone(), noise.clone(), rtc.cloned())
