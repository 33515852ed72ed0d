# SPDX-License-Identifier: Apache-2.0
"""The Wall-OSS model in three stages: pictures to features, prefix to cache, noise to actions."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.family import FamilySizes, differentiable
from xinfer_ros.models.flow import RtcInputs, integrate
from xinfer_ros.models.gemma import LanguageModel, query_bias
from xinfer_ros.models.plain_expert import ExpertPrefix, PlainExpert, Sight, row_bias
from xinfer_ros.models.qwen_positions import (
    PictureTokens,
    next_position,
    picture_tokens,
    place,
    space_angles,
)
from xinfer_ros.models.qwen_vision import QwenVision
from xinfer_ros.models.wall_config import WallConfig

_LONGEST_PERIOD = 10000.0


class Wall(nn.Module):
    """
    Wall-OSS for inference with flow matching.

    The stages share no scratch memory, so different threads may run different stages at once.
    Call ``fix_times`` once after the weights are in place, on the device where they stay.

    :param config: sizes
    Source: published wall-x code, and the layout of its checkpoints as others read it.
    """

    def __init__(self, config: WallConfig) -> None:
        super().__init__()
        self.config = config
        width, inputs = config.expert.hidden, 2 if config.masked_inputs else 1
        self.vision = QwenVision(config.vision, config.language.hidden)
        self.language = LanguageModel(config.language, config.vocabulary)
        self.expert = PlainExpert(config.expert, config.language.kv_width)
        self.w1 = nn.Linear(inputs * config.action_width, width, bias=False)
        self.w2 = nn.Linear(2 * width, width, bias=False)
        self.w3 = nn.Linear(width, width, bias=False)
        self.action_proj_back = nn.Linear(width, config.action_width, bias=False)
        self.propri_proj = nn.Linear(inputs * config.state_width, config.state_hidden, bias=False)
        self._terms: Tensor | None = None

    @torch.no_grad()
    def fix_times(self) -> None:
        """Compute what flow times and the mask of joints add to the rows, once for all."""
        config, weight = self.config, self.w2.weight
        width, scale = config.expert.hidden, config.time_scale
        times = [scale * step / config.num_steps for step in range(config.num_steps)]
        embedding = wall_time_embedding(torch.tensor((*times, scale)), width)
        terms = functional.linear(embedding.to(weight), weight[:, width:])
        if config.masked_inputs:
            masked = self.w1.weight[:, config.action_width :]
            added = functional.linear(self._joint_mask(config.action_width), masked)
            terms = terms + functional.linear(added, weight[:, :width])
        self._terms = terms

    def _joint_mask(self, width: int) -> Tensor:
        """Return 1 for columns that a robot has and 0 for padding, ``(width,)``."""
        mask = self.w2.weight.new_ones(width)
        if self.config.joints is not None:
            mask[self.config.joints :] = 0.0
        return mask

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FamilySizes:
        """
        Return what a request of this contract keeps; place holders are part of the prompt.

        :raises ValueError: if merged patches do not tile a camera's picture
        """
        config, language = self.config, self.config.language
        found = [(camera.height, camera.width) for camera in contract.cameras]
        if found != list(config.pictures):
            raise ValueError(f'cameras have pictures of {found}, the model of {config.pictures}')
        return FamilySizes(
            picture_tokens=config.picture_tokens,
            prefix_tokens=prompt_tokens,
            language=language.hidden,
            layers=language.layers,
            kv_width=language.kv_width,
            horizon=config.horizon,
            action_width=config.action_width,
            state_width=config.state_width,
        )

    def pixels(self, images: Tensor) -> Tensor:
        """Return pictures ``(N, height, width, 3)`` uint8 RGB as ``vit`` takes them."""
        weight, config = self.w2.weight, self.config
        mean, deviation = (
            torch.tensor(values, device=images.device) * 255.0
            for values in (config.pixel_mean, config.pixel_deviation)
        )
        scaled = (images.float() - mean) / deviation
        return scaled.to(weight.dtype).permute(0, 3, 1, 2)

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """
        Return the features of pictures of one size, of any cameras and requests together.

        :param images: ``(N, 3, height, width)``, normalised
        :returns: ``(N, tokens, language width)``
        """
        features: Tensor = self.vision(images)
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
        Return the cache of the prompt, in which features and state stand where it says.

        :param features: ``(B, tokens of all cameras, language width)``, camera by camera
        :param image_mask: ``(B, cameras)`` bool, False where a camera is missing; the prompt has
            no place holders for it
        :param tokens: ``(B, T)`` token ids of the prompt, padded on the right
        :param token_mask: ``(B, T)`` bool, False for padding
        :param state: ``(B, state_width)`` model space, padded with zeros; unused where the
            prompt tells the state in words
        :returns: cache ``(B, layers, 2, T, kv width)``, marks ``(B, T)`` int32: 0 for padding, 1
            and the positions that the token takes otherwise
        """
        config, language = self.config, self.config.language
        is_picture = tokens == config.image_token
        placed = place(is_picture, token_mask, image_mask, self._picture_tokens(features))
        index = placed.source[..., None].expand(-1, -1, features.shape[2])
        x = torch.where(
            is_picture[..., None], features.gather(1, index), self.language.embed_tokens(tokens)
        )
        is_state = (tokens == config.state_token)[..., None]
        x = torch.where(is_state, self._state(state)[:, None].to(x.dtype), x)
        angles = space_angles(
            placed.positions, language.head_dim, config.rope_base, config.sections
        )
        line = torch.arange(tokens.shape[1], device=tokens.device)
        visible = (line <= line[:, None]) & token_mask[:, None] | (line == line[:, None])
        bias = query_bias(visible, language, x.dtype)
        return self.language.turned_cache(x, angles, bias), placed.marks

    def _picture_tokens(self, features: Tensor) -> PictureTokens:
        grids = [self.config.vision.grid(*size) for size in self.config.pictures]
        return picture_tokens(grids, features.device)

    def _state(self, state: Tensor) -> Tensor:
        """Return the state as a token, ``(B, language width)``."""
        config = self.config
        if config.masked_inputs:
            mask = self._joint_mask(config.state_width).expand(len(state), -1)
            state = torch.cat((state, mask), dim=1)
        token = self.propri_proj(state)
        return functional.pad(token, (0, config.language.hidden - config.state_hidden))

    def action(
        self, cache: Tensor, present: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """
        Return chunks in model space.

        :param cache: ``(B, layers, 2, T, kv width)`` from ``prefill``; only read, and more tokens
            than ``present`` has are ignored
        :param present: ``(B, T)`` int32 marks from ``prefill``
        :param noise: ``(B, H, action_width)``, standard normal
        :param rtc: ties to the leftovers, None for none
        :returns: ``(B, H, action_width)`` float32
        :raises RuntimeError: if ``fix_times`` has not been called
        """
        return differentiable(self._integrated, cache, present, noise, rtc)

    def _integrated(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None
    ) -> Tensor:
        if self._terms is None:
            raise RuntimeError('fix_times() must be called once after the weights are loaded')
        config, terms, width = self.config, self._terms, self.config.expert.hidden
        prefix = self._prefix(cache[..., : marks.shape[1], :], marks, noise.shape[1])
        project_in, mix = self.w1.weight[:, : config.action_width], self.w2.weight[:, :width]
        padding = self._padding_velocity(noise)

        def velocity(step: int, x: Tensor) -> Tensor:
            term = terms[step]
            if rtc is not None and rtc.frozen is not None:
                term = torch.where(rtc.frozen[..., None], terms[-1], term)
            rows = functional.linear(functional.linear(x.to(cache.dtype), project_in), mix) + term
            rows = self.expert(self.w3(functional.silu(rows)), prefix)
            found = self.action_proj_back(rows).float()
            if padding is not None:
                found = torch.cat((found[..., : config.joints], padding), dim=-1)
            # Published flow goes from 0 (noise) to time_scale (actions), and upwards.
            return -config.time_scale * found

        return integrate(velocity, noise.float(), config.num_steps, rtc, joints=config.joints)

    def _padding_velocity(self, noise: Tensor) -> Tensor | None:
        """Return the fixed velocity of padded columns, None where the model finds it itself."""
        config = self.config
        if config.padding_target is None or config.joints is None:
            return None
        return config.padding_target - noise[..., config.joints :].float()

    def _prefix(self, cache: Tensor, marks: Tensor, horizon: int) -> ExpertPrefix:
        config, expert = self.config, self.config.expert
        line = next_position(marks)[:, None] + torch.arange(horizon, device=marks.device)
        angles = space_angles(
            line.expand(3, -1, -1), expert.head_dim, config.rope_base, config.sections
        )
        bias = row_bias(marks > 0, horizon, expert, cache.dtype, causal=config.causal_rows)
        return ExpertPrefix(
            keys_values=self.expert.keys_values(cache), rows=Sight(angles=angles, bias=bias)
        )


def wall_time_embedding(times: Tensor, width: int) -> Tensor:
    """
    Return sines and cosines of the flow times, periods growing by factors up to 10,000.

    :param times: ``(N,)``
    :param width: width of the embedding, even, at least 4
    :returns: ``(N, width)`` float32, sines first
    Source: published wall-x code, action head.
    """
    half = width // 2
    rates = torch.exp(torch.arange(half) * (-math.log(_LONGEST_PERIOD) / (half - 1)))
    angles = times[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)
