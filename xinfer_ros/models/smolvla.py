# SPDX-License-Identifier: Apache-2.0
"""The SmolVLA model in three stages: pictures to features, prefix to cache, noise to actions."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.flow import RtcInputs, flow_times, integrate, time_embedding
from xinfer_ros.models.flow_model import FlowSizes, differentiable
from xinfer_ros.models.gemma import (
    Activation,
    GemmaConfig,
    LanguageModel,
    joint_turn,
    key_bias,
    rope_angles,
)
from xinfer_ros.models.joined import prepare
from xinfer_ros.models.plain_expert import (
    ExpertPrefix,
    PlainExpert,
    Sight,
    aligned_bias,
    row_bias,
)
from xinfer_ros.models.siglip import VisionConfig, to_model_range
from xinfer_ros.models.smolvla_vision import SmolVision, SmolVisionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlaConfig:
    """
    Every size of a SmolVLA model.

    :param vision: the vision tower
    :param language: the language model
    :param expert: the action expert; layers, heads, kv heads and head width as in ``language``
    :param vocabulary: number of token ids
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of an action row in model space, at least the robot's joints
    :param state_width: width of the state in model space, at least the robot's joints
    :param self_every: expert layers 0, n, 2 n, ... see their own rows beside the prefix
    :param num_steps: Euler steps, ``K``
    :param joints: columns of a row that a robot has, the rest is padding; None for all
    :raises ValueError: if expert and language model can not share a cache
    """

    vision: SmolVisionConfig
    language: GemmaConfig
    expert: GemmaConfig
    vocabulary: int
    horizon: int
    action_width: int
    state_width: int
    self_every: int = 2
    num_steps: int = 10
    joints: int | None = None

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        for name in ('layers', 'heads', 'kv_heads', 'head_dim'):
            ours, theirs = getattr(self.expert, name), getattr(self.language, name)
            if ours != theirs:
                raise ValueError(
                    f'the expert has {name} = {ours} and the language model {theirs}; '
                    'the expert reads its cache, so both must be equal'
                )


def smol_decoder(
    *, hidden: int, layers: int, mlp: int, heads: int, kv_heads: int, head_dim: int
) -> GemmaConfig:
    """Return the sizes of a decoder with the norms and activation of SmolLM2."""
    return GemmaConfig(
        hidden=hidden,
        layers=layers,
        mlp=mlp,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        activation=Activation.SILU,
        norm_offset=0.0,
        epsilon=1e-5,
    )


def published_smolvla() -> SmolVlaConfig:
    """Return the sizes of the published checkpoint: SmolVLM2-500M cut to 16 layers."""
    heads = {'layers': 16, 'heads': 15, 'kv_heads': 5, 'head_dim': 64}
    return SmolVlaConfig(
        vision=SmolVisionConfig(
            tower=VisionConfig(
                height=512, width=512, patch=16, hidden=768, layers=12, mlp=3072, heads=12
            ),
            fold=4,
        ),
        language=smol_decoder(hidden=960, mlp=2560, **heads),
        expert=smol_decoder(hidden=720, mlp=2048, **heads),
        vocabulary=49280,
        horizon=50,
        action_width=32,
        state_width=32,
    )


class SmolVla(nn.Module):
    """
    SmolVLA for inference.

    The stages share no scratch memory, so different threads may run different stages at once.
    Call ``fix_times`` once after the weights are in place, on the device where they stay.

    :param config: sizes
    Source: published SmolVLA checkpoints (LeRobot layout).
    """

    def __init__(self, config: SmolVlaConfig) -> None:
        super().__init__()
        self.config = config
        hidden, width = config.language.hidden, config.expert.hidden
        self.vision = SmolVision(config.vision, hidden)
        self.language = LanguageModel(config.language, config.vocabulary)
        self.expert = PlainExpert(config.expert, config.language.kv_width, config.self_every)
        self.state_proj = nn.Linear(config.state_width, hidden)
        self.action_in_proj = nn.Linear(config.action_width, width)
        self.action_out_proj = nn.Linear(width, config.action_width)
        self.action_time_mlp_in = nn.Linear(2 * width, width)
        self.action_time_mlp_out = nn.Linear(width, width)
        self._time_terms: Tensor | None = None

    @torch.no_grad()
    def fix_times(self) -> None:
        """Compute what the flow times add to the rows, once for all, and join layers."""
        layer, width = self.action_time_mlp_in, self.config.expert.hidden
        times = torch.tensor((*flow_times(self.config.num_steps), 0.0), device=layer.weight.device)
        embedding = time_embedding(times, width).to(layer.weight.dtype)
        self._time_terms = functional.linear(embedding, layer.weight[:, width:], layer.bias)
        prepare(self)

    @property
    def weight(self) -> Tensor:
        """Return a weight, for its device and type."""
        return self.action_in_proj.weight

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FlowSizes:
        """
        Return what a request of this contract keeps.

        :raises ValueError: if a camera's picture has another size than the model's
        """
        vision, language = self.config.vision, self.config.language
        for camera in contract.cameras:
            if (camera.height, camera.width) != (vision.height, vision.width):
                raise ValueError(
                    f'camera {camera.name} is {camera.height}x{camera.width}, the model takes '
                    f'{vision.height}x{vision.width}'
                )
        pictures = len(contract.cameras) * vision.num_tokens
        return FlowSizes(
            picture_tokens=pictures,
            prompt_tokens=prompt_tokens,
            prefix_tokens=pictures + prompt_tokens + 1,  # the state
            language=language.hidden,
            layers=language.layers,
            kv_width=language.kv_width,
            horizon=self.config.horizon,
            action_width=self.config.action_width,
            state_width=self.config.state_width,
        )

    def pixels(self, images: Tensor) -> Tensor:
        """Return pictures ``(N, height, width, 3)`` uint8 RGB as ``vit`` takes them."""
        return to_model_range(images, torch.float32).to(self.weight.dtype)

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """
        Return the features of pictures, of any cameras and requests together.

        :param images: ``(N, 3, height, width)``, [-1, 1]
        :returns: ``(N, tokens, language width)``
        """
        features: Tensor = self.vision(images) * self.config.language.hidden**0.5
        return features

    @torch.inference_mode()
    def prefill(
        self,
        features: Tensor,
        image_mask: Tensor,
        tokens: Tensor,
        token_mask: Tensor,
        state: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """
        Return the cache of the prefix: all cameras, then the prompt, then the state.

        :param features: ``(B, cameras, camera tokens, language width)`` from ``vit``, or
            ``(B, tokens of all cameras, language width)``
        :param image_mask: ``(B, cameras)`` bool, False where a camera is missing
        :param tokens: ``(B, T)`` token ids of the prompt, padded on the right
        :param token_mask: ``(B, T)`` bool, False for padding
        :param state: ``(B, state_width)`` model space, padded with zeros
        :returns: cache ``(B, layers, 2, prefix, kv width)``, present ``(B, prefix)`` bool
        """
        words, own = self.language.embed(tokens), self.state_proj(state)[:, None]
        x = torch.cat((features.flatten(1, -2), words, own), dim=1)
        seen = image_mask[..., None].expand(-1, -1, self.config.vision.num_tokens).flatten(1)
        always = torch.ones_like(token_mask[:, :1])
        present = torch.cat((seen, token_mask, always), dim=1)
        config = self.config.language
        angles = rope_angles(present.long().cumsum(1) - 1, config.head_dim)
        bias = aligned_bias(_visible(present), config, x.dtype)
        return self.language.turned_cache(x, angles, bias), present

    def action(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """
        Return chunks in model space.

        :param cache: ``(B, layers, 2, prefix, kv width)`` from ``prefill``; or with room for the
            rows of the chunk behind it, ``prefix + H`` tokens, which is overwritten
        :param marks: ``(B, prefix)`` from ``prefill``, bool or 0 and 1
        :param noise: ``(B, H, action_width)``, standard normal
        :param rtc: ties to the leftovers, None for none
        :returns: ``(B, H, action_width)`` float32
        :raises RuntimeError: if ``fix_times`` has not been called
        """
        return differentiable(self._integrated, cache, marks, noise, rtc)

    def _integrated(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None
    ) -> Tensor:
        if self._time_terms is None:
            raise RuntimeError('fix_times() must be called once after the weights are loaded')
        terms, width = self._time_terms, self.config.expert.hidden
        prefix = self._prefix(cache, marks > 0, noise.shape[1])
        row_weight = self.action_time_mlp_in.weight[:, :width]

        def velocity(step: int, x: Tensor) -> Tensor:
            term = terms[step]
            if rtc is not None and rtc.frozen is not None:
                term = torch.where(rtc.frozen[..., None], terms[-1], term)
            rows = self.action_in_proj(x.to(cache.dtype))
            rows = functional.linear(rows, row_weight) + term
            rows = self.action_time_mlp_out(functional.silu(rows))
            found: Tensor = self.action_out_proj(self.expert(rows, prefix))
            return found.float()

        config = self.config
        return integrate(velocity, noise.float(), config.num_steps, rtc, joints=config.joints)

    def _prefix(self, cache: Tensor, present: Tensor, horizon: int) -> ExpertPrefix:
        config, rows = self.config.expert, torch.arange(horizon, device=present.device)
        first = present.long().sum(1, keepdim=True)
        return ExpertPrefix(
            layers=self.expert.layer_keys(cache, present.shape[1], horizon),
            turn=joint_turn(rope_angles(first + rows, config.head_dim), config),
            bias=row_bias(present, horizon, config, cache.dtype, causal=True),
            cross=Sight(
                angles=rope_angles(rows[None], config.head_dim),
                bias=key_bias(present, cache.dtype),
            ),
        )


def _visible(present: Tensor) -> Tensor:
    """
    Return which tokens of a prefix see which, ``(B, T, T)`` bool.

    Present tokens see each other, but only the last, the state, sees the state. Every token sees
    itself, so that padding, which nothing else reads, has something finite to attend to.
    """
    line = torch.arange(present.shape[1], device=present.device)
    before = line < present.shape[1] - 1
    return present[:, None] & (before | ~before[:, None]) | (line == line[:, None])
