# SPDX-License-Identifier: Apache-2.0
"""A π0.5 model as the stages over static memory take it."""

import torch
from torch import Tensor

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.flow_model import FlowSizes
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.siglip import to_model_range


class Pi05Flow:
    """
    π0.5 as a ``FlowModel``: the prompt tells the state, and all pictures have one size.

    :param model: with weights in place and times fixed
    """

    def __init__(self, model: Pi05) -> None:
        self._model = model

    @property
    def weight(self) -> Tensor:
        """Return a weight, for its device and type."""
        return self._model.action_in_proj.weight

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FlowSizes:
        """
        Return what a request of this contract keeps.

        :raises ValueError: if a camera's picture has another size than the model's
        """
        config, vision = self._model.config, self._model.config.vision
        for camera in contract.cameras:
            if (camera.height, camera.width) != (vision.height, vision.width):
                raise ValueError(
                    f'camera {camera.name} is {camera.height}x{camera.width}, the model takes '
                    f'{vision.height}x{vision.width}'
                )
        black = self.weight.new_zeros((1, 3, vision.height, vision.width))
        camera_tokens = self._model.vit(black).shape[1]  # models may merge patches
        pictures = len(contract.cameras) * camera_tokens
        return FlowSizes(
            picture_tokens=pictures,
            prompt_tokens=prompt_tokens,
            prefix_tokens=pictures + prompt_tokens,
            language=config.language.hidden,
            layers=config.language.layers,
            kv_width=config.language.kv_width,
            horizon=config.horizon,
            action_width=config.action_width,
            state_width=0,
        )

    def pixels(self, images: Tensor) -> Tensor:
        """Return pictures ``(N, height, width, 3)`` uint8 RGB as ``vit`` takes them."""
        return to_model_range(images, torch.float32).to(self.weight.dtype)

    def vit(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, language width)``."""
        return self._model.vit(images)

    def prefill(
        self,
        features: Tensor,
        image_mask: Tensor,
        tokens: Tensor,
        token_mask: Tensor,
        state: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """
        Return cache ``(B, layers, 2, prefix, kv width)`` and present ``(B, prefix)`` bool.

        :param features: ``(B, tokens of all cameras, language width)``
        :param image_mask: ``(B, cameras)`` bool, False where a camera is missing
        :param tokens: ``(B, T)`` token ids of the prompt, padded on the right
        :param token_mask: ``(B, T)`` bool, False for padding
        :param state: ``(B, 0)``, nothing: the prompt tells it
        """
        apart = features.view(features.shape[0], image_mask.shape[1], -1, features.shape[2])
        return self._model.prefill(apart, image_mask, tokens, token_mask)

    def action(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """Return chunks ``(B, H, action_width)`` float32 in model space."""
        return self._model.action(cache, marks > 0, noise, rtc)
