# SPDX-License-Identifier: Apache-2.0
"""The π0.5 model in three stages: pictures to features, prefix to cache, noise to actions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.models.expert import (
    ActionExpert,
    GradientPrefix,
    Modulation,
    Prefix,
    mixed_modulations,
    split_modulations,
)
from xinfer_ros.models.flow import RtcInputs, flow_times, integrate, time_embedding
from xinfer_ros.models.gemma import GemmaConfig, LanguageModel
from xinfer_ros.models.joined import prepare
from xinfer_ros.models.rtc import Jacobian
from xinfer_ros.models.siglip import VisionConfig, VisionTower


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi05Config:
    """
    Every size of a π0.5 model.

    :param vision: the vision tower
    :param language: the language model
    :param expert: the action expert; layers, heads, kv heads and head width as in ``language``
    :param vocabulary: number of token ids
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of an action row in model space, at least the robot's joints
    :param num_steps: Euler steps, ``K``
    :param joints: columns of a row that a robot has, the rest is padding; None for all
    :raises ValueError: if expert and language model can not share a cache
    """

    vision: VisionConfig
    language: GemmaConfig
    expert: GemmaConfig
    vocabulary: int
    horizon: int
    action_width: int
    num_steps: int = 10
    joints: int | None = None

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        for name in ('layers', 'heads', 'kv_heads', 'head_dim'):
            ours, theirs = getattr(self.expert, name), getattr(self.language, name)
            if ours != theirs:
                raise ValueError(
                    f'the expert has {name} = {ours} and the language model {theirs}; '
                    'they share a cache, so both must be equal'
                )


def published_config() -> Pi05Config:
    """Return the sizes of the published checkpoints, 3.35 G parameters."""
    return Pi05Config(
        vision=VisionConfig(
            height=224, width=224, patch=14, hidden=1152, layers=27, mlp=4304, heads=16
        ),
        language=GemmaConfig(hidden=2048, layers=18, mlp=16384, heads=8, kv_heads=1, head_dim=256),
        expert=GemmaConfig(hidden=1024, layers=18, mlp=4096, heads=8, kv_heads=1, head_dim=256),
        vocabulary=257152,
        horizon=50,
        action_width=32,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """
    What does not change from chunk to chunk.

    :param modulations: ``(K + 1, norms, 3, hidden)`` of each Euler step and of time 0
    :param steps: the same, apart
    :param project_in: rows of actions to tokens, float32
    :param project_out: tokens to rows of actions, float32
    """

    modulations: Tensor
    steps: tuple[tuple[Modulation, ...], ...]
    project_in: Callable[[Tensor], Tensor]
    project_out: Callable[[Tensor], Tensor]


class Pi05(nn.Module):
    """
    π0.5 for inference.

    The stages share no scratch memory, so different threads may run different stages at once.
    Call ``fix_times`` once after the weights are in place, on the device where they stay.

    :param config: sizes
    Source: published π0.5 checkpoints (LeRobot layout) and openpi.
    """

    def __init__(self, config: Pi05Config) -> None:
        super().__init__()
        self.config = config
        width = config.expert.hidden
        self.vision = VisionTower(config.vision)
        self.projector = nn.Linear(config.vision.hidden, config.language.hidden)
        self.language = LanguageModel(config.language, config.vocabulary)
        self.expert = ActionExpert(config.expert)
        self.action_in_proj = nn.Linear(config.action_width, width)
        self.action_out_proj = nn.Linear(width, config.action_width)
        self.time_mlp_in = nn.Linear(width, width)
        self.time_mlp_out = nn.Linear(width, width)
        self._fixed: _Fixed | None = None

    @torch.no_grad()
    def fix_times(self) -> None:
        """
        Compute the norms' modulations of the ``K`` flow times and of time 0, once for all.

        They depend on the weights only, and reading those layers' weights at every Euler step
        would cost more than the rows of a small batch do. The projections of actions are kept in
        float32, as published code has them: a chunk is integrated in that type.

        Layers of one input are joined too, see ``joined.prepare``; who converts or moves the model
        afterwards prepares it again, or it runs slower.
        """
        weight = self.time_mlp_in.weight
        times = torch.tensor((*flow_times(self.config.num_steps), 0.0), device=weight.device)
        embedding = time_embedding(times, self.config.expert.hidden).to(weight.dtype)
        condition = functional.silu(self.time_mlp_in(embedding))
        condition = functional.silu(self.time_mlp_out(condition))
        modulations = self.expert.modulations(condition)
        self._fixed = _Fixed(
            modulations=modulations,
            steps=tuple(split_modulations(step) for step in modulations),
            project_in=_linear(self.action_in_proj),
            project_out=_linear(self.action_out_proj),
        )
        prepare(self)

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """
        Return the features of pictures, of any cameras and requests together.

        :param images: ``(N, 3, height, width)``, [-1, 1]
        :returns: ``(N, tokens, language width)``
        """
        features: Tensor = self.projector(self.vision(images))
        return features

    @torch.inference_mode()
    def prefill(
        self, features: Tensor, image_mask: Tensor, tokens: Tensor, token_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """
        Return the cache of the prefix: all cameras, then the prompt.

        :param features: ``(B, cameras, camera tokens, language width)`` from ``vit``
        :param image_mask: ``(B, cameras)`` bool, False where a camera is missing
        :param tokens: ``(B, T)`` token ids of the prompt, padded on the right
        :param token_mask: ``(B, T)`` bool, False for padding
        :returns: cache ``(B, layers, 2, prefix, kv width)``, present ``(B, prefix)`` bool
        """
        x = torch.cat((features.flatten(1, 2), self.language.embed(tokens)), dim=1)
        seen = image_mask[:, :, None].expand(-1, -1, features.shape[2]).flatten(1)
        present = torch.cat((seen, token_mask), dim=1)
        return self.language.fill_cache(x, present), present

    @torch.inference_mode()
    def action(
        self, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """
        Return chunks in model space.

        :param cache: ``(B, layers, 2, prefix, kv width)`` from ``prefill``; only read
        :param present: ``(B, prefix)`` bool from ``prefill``
        :param noise: ``(B, H, action_width)``, standard normal
        :param rtc: ties to the leftovers, None for none
        :returns: ``(B, H, action_width)`` float32
        :raises RuntimeError: if ``fix_times`` has not been called
        """
        if rtc is None or rtc.jacobian is Jacobian.IDENTITY:
            return self._integrated(cache, present, noise, rtc)
        # What was made in inference mode can not take part in a gradient, but its copies can.
        with torch.inference_mode(False), torch.no_grad():
            copies = (cache.clone(), present.clone(), noise.clone())
            return self._integrated(*copies, rtc.cloned())

    def _integrated(
        self, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None
    ) -> Tensor:
        if self._fixed is None:
            raise RuntimeError('fix_times() must be called once after the weights are loaded')
        fixed = self._fixed
        gradients = rtc is not None and rtc.jacobian is Jacobian.VJP
        kind, config = GradientPrefix if gradients else Prefix, self.config
        prefix = kind(cache, present, config.horizon, config.expert)

        def velocity(step: int, x: Tensor) -> Tensor:
            norms = fixed.steps[step]
            if rtc is not None and rtc.frozen is not None:
                clean, noisy = fixed.modulations[-1], fixed.modulations[step]
                norms = mixed_modulations(rtc.frozen, clean, noisy)
            rows = self.expert(fixed.project_in(x.flatten(0, 1)), norms, prefix)
            return torch.unflatten(fixed.project_out(rows), 0, (-1, config.horizon))

        return integrate(velocity, noise.float(), config.num_steps, rtc, joints=config.joints)


def _linear(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Return a linear layer in float32; without copies where its weights have that type."""
    weight, bias = layer.weight.detach().float(), layer.bias.detach().float()
    return lambda x: functional.linear(x, weight, bias)
