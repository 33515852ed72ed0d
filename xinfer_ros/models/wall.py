# SPDX-License-Identifier: Apache-2.0
"""The Wall-OSS model in three stages: pictures to features, prefix to cache, noise to actions."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.flow import RtcInputs, integrate
from xinfer_ros.models.flow_model import FlowSizes, differentiable
from xinfer_ros.models.gemma import LanguageModel, joint_turn
from xinfer_ros.models.joined import prepare
from xinfer_ros.models.plain_expert import (
    ExpertPrefix,
    PlainExpert,
    aligned_bias,
    row_bias,
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """
    What depends on sizes and weights alone, computed once.

    :param terms: ``(K + 1, expert width)``, what each flow time and time 0 add to the rows
    :param pixel_scale: ``(3,)`` float32, of each colour
    :param pixel_shift: ``(3,)`` float32, of each colour
    :param places: of the tokens of all pictures
    :param state_mask: ``(state_width,)``, see ``joint_mask``
    """

    terms: Tensor
    pixel_scale: Tensor
    pixel_shift: Tensor
    places: PictureTokens
    state_mask: Tensor


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
        self._fixed: _Fixed | None = None

    @torch.no_grad()
    def fix_times(self) -> None:
        """Compute what depends on flow times, joints and sizes of pictures, once for all."""
        config, weight = self.config, self.w2.weight
        mean, deviation = (
            255.0 * torch.tensor(values, dtype=torch.float64)
            for values in (config.pixel_mean, config.pixel_deviation)
        )
        prepare(self)
        self.vision.fix_pictures(config.pictures)
        self._fixed = _Fixed(
            terms=self._time_terms(),
            pixel_scale=(1.0 / deviation).float().to(weight.device),
            pixel_shift=(-mean / deviation).float().to(weight.device),
            places=picture_tokens(
                [config.vision.grid(*size) for size in config.pictures], weight.device
            ),
            state_mask=self._joint_mask(config.state_width),
        )

    def _time_terms(self) -> Tensor:
        """Return what flow times and the mask of joints add to the rows."""
        config, weight = self.config, self.w2.weight
        width, scale = config.expert.hidden, config.time_scale
        times = [scale * step / config.num_steps for step in range(config.num_steps)]
        embedding = wall_time_embedding(torch.tensor((*times, scale)), width)
        terms = functional.linear(embedding.to(weight), weight[:, width:])
        if config.masked_inputs:
            masked = self.w1.weight[:, config.action_width :]
            added = functional.linear(self._joint_mask(config.action_width), masked)
            terms = terms + functional.linear(added, weight[:, :width])
        return terms

    def _ready(self) -> _Fixed:
        if self._fixed is None:
            raise RuntimeError('fix_times() must be called once after the weights are loaded')
        return self._fixed

    def _joint_mask(self, width: int) -> Tensor:
        """Return 1 for columns that a robot has and 0 for padding, ``(width,)``."""
        mask = self.w2.weight.new_ones(width)
        if self.config.joints is not None:
            mask[self.config.joints :] = 0.0
        return mask

    @property
    def weight(self) -> Tensor:
        """Return a weight, for its device and type."""
        return self.w2.weight

    def sizes(self, contract: ModelContract, prompt_tokens: int) -> FlowSizes:
        """
        Return what a request of this contract keeps; place holders are part of the prompt.

        :raises ValueError: if merged patches do not tile a camera's picture
        """
        config, language = self.config, self.config.language
        found = [(camera.height, camera.width) for camera in contract.cameras]
        if found != list(config.pictures):
            raise ValueError(f'cameras have pictures of {found}, the model of {config.pictures}')
        return FlowSizes(
            picture_tokens=config.picture_tokens,
            prompt_tokens=prompt_tokens,
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
        fixed = self._ready()
        scaled = torch.addcmul(fixed.pixel_shift, images.float(), fixed.pixel_scale)
        return scaled.to(self.weight.dtype).permute(0, 3, 1, 2)

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
        placed = place(is_picture, token_mask, image_mask, self._ready().places)
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
        bias = aligned_bias(visible, language, x.dtype)
        return self.language.turned_cache(x, angles, bias), placed.marks

    def _state(self, state: Tensor) -> Tensor:
        """Return the state as a token, ``(B, language width)``."""
        config = self.config
        if config.masked_inputs:
            mask = self._ready().state_mask.expand(state.shape[0], -1)
            state = torch.cat((state, mask), dim=1)
        token = self.propri_proj(state)
        return functional.pad(token, (0, config.language.hidden - config.state_hidden))

    def action(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None = None
    ) -> Tensor:
        """
        Return chunks in model space.

        :param cache: ``(B, layers, 2, T, kv width)`` from ``prefill``; or with room for the rows
            of the chunk behind it, ``T + H`` tokens, which is overwritten
        :param marks: ``(B, T)`` int32 from ``prefill``
        :param noise: ``(B, H, action_width)``, standard normal
        :param rtc: ties to the leftovers, None for none
        :returns: ``(B, H, action_width)`` float32
        :raises RuntimeError: if ``fix_times`` has not been called
        """
        return differentiable(self._integrated, cache, marks, noise, rtc)

    def _integrated(
        self, cache: Tensor, marks: Tensor, noise: Tensor, rtc: RtcInputs | None
    ) -> Tensor:
        config, terms, width = self.config, self._ready().terms, self.config.expert.hidden
        prefix = self._prefix(cache, marks, noise.shape[1])
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
            layers=self.expert.layer_keys(cache, marks.shape[1], horizon),
            turn=joint_turn(angles, expert),
            bias=bias,
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
