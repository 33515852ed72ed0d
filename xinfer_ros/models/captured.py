# SPDX-License-Identifier: Apache-2.0
"""A π0.5 model captured as graphs: on a CPU, small operations cost more to call than to do."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.pi05 import Pi05

Stages = tuple[Callable[..., Tensor], Callable[..., tuple[Tensor, Tensor]], Callable[..., Tensor]]


class CapturedPi05:
    """
    Runs requests one at a time through graphs, and batches through the model itself.

    A graph runs without Python, so it is about twice as fast for a small model, and the lanes do
    not wait for each other's interpreter lock.

    :param model: with weights in place and times fixed
    :param cameras: pictures a request
    :param prompt_tokens: tokens of the prompt with padding
    :param max_gain: upper limit β of the guidance gain
    """

    def __init__(self, model: Pi05, cameras: int, prompt_tokens: int, max_gain: float) -> None:
        self._model, self._max_gain = model, max_gain
        self._cameras = cameras
        self._vit, self._prefill, self._action = self._capture(prompt_tokens)

    @torch.inference_mode()
    def _capture(self, prompt_tokens: int) -> Stages:
        model, config = self._model, self._model.config
        weight = model.action_in_proj.weight
        height, width = config.vision.height, config.vision.width
        images = weight.new_zeros((self._cameras, 3, height, width))
        features = model.vit(images).unsqueeze(0)
        mask = torch.ones((1, self._cameras), dtype=torch.bool, device=weight.device)
        tokens = torch.zeros((1, prompt_tokens), dtype=torch.long, device=weight.device)
        cache, present = model.prefill(features, mask, tokens, tokens == 0)
        rows = weight.new_zeros((1, config.horizon, config.action_width))

        def vit(images: Tensor) -> Tensor:
            return model.vit(images)

        def prefill(features: Tensor, mask: Tensor, tokens: Tensor, used: Tensor) -> Any:
            return model.prefill(features, mask, tokens, used)

        def action(
            cache: Tensor, present: Tensor, noise: Tensor, previous: Tensor, weights: Tensor
        ) -> Tensor:
            rtc = RtcInputs(previous=previous, weights=weights, max_gain=self._max_gain)
            return model.action(cache, present, noise, rtc)

        trace: Any = torch.jit.trace
        with warnings.catch_warnings():
            # torch names torch.export as the successor of its tracer, but that runs in Python
            warnings.simplefilter('ignore')
            return (
                trace(vit, (images,), check_trace=False),
                trace(prefill, (features, mask, tokens, tokens == 0), check_trace=False),
                trace(action, (cache, present, rows, rows, rows[..., 0]), check_trace=False),
            )

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """Return what ``Pi05.vit`` does."""
        if len(images) == self._cameras:
            return self._vit(images)
        return self._model.vit(images)

    @torch.inference_mode()
    def prefill(
        self, features: Tensor, image_mask: Tensor, tokens: Tensor, token_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what ``Pi05.prefill`` does."""
        run = self._prefill if len(features) == 1 else self._model.prefill
        return run(features, image_mask, tokens, token_mask)

    @torch.inference_mode()
    def action(
        self, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """Return what ``Pi05.action`` does; without hard prefixes, which have no graph."""
        if len(noise) > 1 or (rtc is not None and rtc.frozen is not None):
            return self._model.action(cache, present, noise, rtc)
        if rtc is None:
            return self._action(cache, present, noise, noise, torch.zeros_like(noise[..., 0]))
        return self._action(cache, present, noise, rtc.previous, rtc.weights)
