# SPDX-License-Identifier: Apache-2.0
"""Flow matching from noise to actions in fixed Euler steps, guided by real-time chunking."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from xinfer_ros.core.guidance import guidance_gains
from xinfer_ros.models.rtc import Jacobian

_MIN_PERIOD = 4e-3
_MAX_PERIOD = 4.0

Velocity = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class RtcInputs:
    """
    What ties the new chunks of a batch to the leftovers, each request in its own way.

    A request without a leftover has weights of 0 and no frozen row.

    :param previous: ``(B, H, action_width)`` leftovers in model space, row 0 is executed next
    :param weights: ``(B, H)`` guidance weights in [0, 1], see ``core.guidance``; None where
        no request is guided
    :param frozen: ``(B, H)`` bool, rows clamped to ``previous`` at every step, with flow time 0 of
        their own (for checkpoints trained that way); None where no request has any
    :param max_gain: upper limit β of the guidance gain
    :param jacobian: what the guidance takes for the derivative of the denoiser
    """

    previous: Tensor
    weights: Tensor | None = None
    frozen: Tensor | None = None
    max_gain: float = 5.0
    jacobian: Jacobian = Jacobian.IDENTITY

    def cloned(self) -> 'RtcInputs':
        """Return the same ties in memory of their own."""
        weights = None if self.weights is None else self.weights.clone()
        frozen = None if self.frozen is None else self.frozen.clone()
        return replace(self, previous=self.previous.clone(), weights=weights, frozen=frozen)


def flow_times(num_steps: int) -> tuple[float, ...]:
    """Return the flow time of each Euler step, from 1 (noise) towards 0 (actions)."""
    return tuple(1.0 - step / num_steps for step in range(num_steps))


def time_embedding(times: Tensor, width: int) -> Tensor:
    """
    Return sines and cosines of the flow times over periods from 4 ms to 4.

    :param times: ``(N,)`` in [0, 1]
    :param width: width of the embedding, even
    :returns: ``(N, width)`` float64, sines first; the caller narrows it
    Source: openpi, ``posemb_sincos``.
    """
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64, device=times.device)
    periods = _MIN_PERIOD * (_MAX_PERIOD / _MIN_PERIOD) ** fraction
    angles = times.double()[:, None] * (2.0 * math.pi / periods)
    return torch.cat((angles.sin(), angles.cos()), dim=1)


def integrate(
    velocity: Velocity,
    noise: Tensor,
    num_steps: int,
    rtc: RtcInputs | None,
    *,
    joints: int | None = None,
) -> Tensor:
    """
    Integrate from noise to actions, each request of the batch with ties of its own.

    With the identity as Jacobian the guidance is a closed form. With the true one every step runs
    back through ``velocity``, so neither it nor its inputs may come from inference mode.

    :param velocity: gives ``noise - actions`` ``(B, H, action_width)`` for (step, x)
    :param noise: ``(B, H, action_width)``
    :param num_steps: Euler steps, ``K``
    :param rtc: ties to the leftovers, None for none
    :param joints: columns that are guided, the first ones; None for all
    :returns: ``(B, H, action_width)`` actions in model space
    Source: Real-time chunking, algorithm 1, with t = 1 - τ and v' = -v.
    """
    x = _clamp_frozen(noise, rtc)
    pull = None if rtc is None else _pull(rtc, num_steps, joints)
    for step, time in enumerate(flow_times(num_steps)):
        if pull is None:
            x = torch.sub(x, velocity(step, x), alpha=1.0 / num_steps)
        elif pull.jacobian is Jacobian.IDENTITY:
            v = velocity(step, x)
            missing = pull.previous - torch.sub(x, v, alpha=time)
            x = torch.sub(x, v, alpha=1.0 / num_steps)
            x = torch.addcmul(x, pull.weights, missing, value=pull.gains[step] / num_steps)
        else:
            v, correction = _pulled_back(velocity, step, time, x, pull)
            x = x - (v - pull.gains[step] * correction) / num_steps
        x = _clamp_frozen(x, rtc)
    return x


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pull:
    """
    What draws a chunk to the leftovers.

    :param previous: ``(B, H, action_width)``
    :param weights: ``(B, H, 1)``, or with one for each column
    :param gains: of each Euler step
    :param jacobian: what the guidance takes for the derivative of the denoiser
    """

    previous: Tensor
    weights: Tensor
    gains: tuple[float, ...]
    jacobian: Jacobian


def _pull(rtc: RtcInputs, num_steps: int, joints: int | None) -> _Pull | None:
    """Return the pull of the weights, None without any; padding is not guided."""
    if rtc.weights is None:
        return None
    weights, padding = rtc.weights[..., None].to(rtc.previous.dtype), 0
    if joints is not None:
        padding = int(rtc.previous.shape[-1]) - joints
    if joints is not None and padding > 0:  # nobody has promised anything about padding
        weights = functional.pad(weights.expand(-1, -1, joints), (0, padding))
    return _Pull(
        previous=rtc.previous,
        weights=weights,
        gains=guidance_gains(num_steps, rtc.max_gain),
        jacobian=rtc.jacobian,
    )


def _pulled_back(
    velocity: Velocity, step: int, time: float, x: Tensor, pull: _Pull
) -> tuple[Tensor, Tensor]:
    """Return the velocity, and the error taken back through the estimate's derivative."""
    with torch.enable_grad():
        start = x.detach().requires_grad_()
        v = velocity(step, start)
    found = v.detach()
    error = (pull.previous - torch.sub(x, found, alpha=time)) * pull.weights
    (slope,) = torch.autograd.grad(v, start, error)
    return found, error - time * slope


def _clamp_frozen(x: Tensor, rtc: RtcInputs | None) -> Tensor:
    if rtc is None or rtc.frozen is None:
        return x
    return torch.where(rtc.frozen[..., None], rtc.previous, x)
