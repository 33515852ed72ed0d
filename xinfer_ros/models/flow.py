# SPDX-License-Identifier: Apache-2.0
"""Flow matching from noise to actions in fixed Euler steps, guided by real-time chunking."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from xinfer_ros.models.rtc import Jacobian, guidance_gains

_MIN_PERIOD = 4e-3
_MAX_PERIOD = 4.0

Velocity = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class RtcInputs:
    """
    What ties the new chunks of a batch to the leftovers, each request in its own way.

    A request without a leftover has weights of 0 and no frozen row.

    :param previous: ``(B, H, action_width)`` leftovers in model space, row 0 is executed next
    :param weights: ``(B, H)`` guidance weights in [0, 1], see ``rtc.prefix_weights``
    :param frozen: ``(B, H)`` bool, rows clamped to ``previous`` at every step, with flow time 0 of
        their own (for checkpoints trained that way); None where no request has any
    :param max_gain: upper limit β of the guidance gain
    :param jacobian: what the guidance takes for the derivative of the denoiser
    """

    previous: Tensor
    weights: Tensor
    frozen: Tensor | None = None
    max_gain: float = 5.0
    jacobian: Jacobian = Jacobian.IDENTITY

    def cloned(self) -> 'RtcInputs':
        """Return the same ties in memory of their own."""
        frozen = None if self.frozen is None else self.frozen.clone()
        return replace(
            self, previous=self.previous.clone(), weights=self.weights.clone(), frozen=frozen
        )


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
    gains = None if rtc is None else guidance_gains(num_steps, rtc.max_gain)
    x = _clamp_frozen(noise, rtc)
    for step, time in enumerate(flow_times(num_steps)):
        if rtc is None or gains is None:
            v = velocity(step, x)
        elif rtc.jacobian is Jacobian.IDENTITY:
            v = velocity(step, x)
            v = v - gains[step] * _error(x - time * v, rtc, joints)
        else:
            v, correction = _pulled_back(velocity, step, time, x, rtc, joints)
            v = v - gains[step] * correction
        x = _clamp_frozen(x - v / num_steps, rtc)
    return x


def _error(estimate: Tensor, rtc: RtcInputs, joints: int | None) -> Tensor:
    """Return the weighted distance of the estimated actions to the leftover."""
    error = (rtc.previous - estimate) * rtc.weights[..., None]
    if joints is not None:
        error[..., joints:] = 0.0  # nobody has promised anything about padding
    return error


def _pulled_back(
    velocity: Velocity,
    step: int,
    time: float,
    x: Tensor,
    rtc: RtcInputs,
    joints: int | None,
) -> tuple[Tensor, Tensor]:
    """Return the velocity, and the error taken back through the estimate's derivative."""
    with torch.enable_grad():
        start = x.detach().requires_grad_()
        v = velocity(step, start)
    found = v.detach()
    error = _error(x - time * found, rtc, joints)
    (slope,) = torch.autograd.grad(v, start, error)
    return found, error - time * slope


def _clamp_frozen(x: Tensor, rtc: RtcInputs | None) -> Tensor:
    if rtc is None or rtc.frozen is None:
        return x
    return torch.where(rtc.frozen[..., None], rtc.previous, x)
