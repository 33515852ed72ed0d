# SPDX-License-Identifier: Apache-2.0
"""Weights and gains by which real-time chunking draws a new chunk to the leftover."""

from enum import Enum

import numpy as np
import numpy.typing as npt


class Schedule(Enum):
    """How the weights fall between the commitment and the end of the guidance."""

    LINEAR = 'linear'
    EXP = 'exp'
    ONES = 'ones'
    ZEROS = 'zeros'


def prefix_weights(
    horizon: int, commitment_steps: int, end_step: int, schedule: Schedule
) -> npt.NDArray[np.float32]:
    """
    Return the weight of every row of the leftover.

    1 up to the commitment, 0 from ``end_step`` on, in between as the schedule says.

    :param horizon: rows of a chunk, ``H``
    :param commitment_steps: ``d`` [steps], lowered to ``end_step`` if larger
    :param end_step: first row that is free, ``H - s`` with execution horizon ``s`` [steps]
    :param schedule: the shape between the two
    :returns: ``(H,)`` float32 in [0, 1]
    :raises ValueError: if a count is outside ``0..H``
    Source: Real-time chunking, eq. 5; ``c = (end - i) / (end - d + 1)``.
    """
    for name, value in (('commitment_steps', commitment_steps), ('end_step', end_step)):
        if not 0 <= value <= horizon:
            raise ValueError(f'{name} is {value}, allowed is 0 to the horizon of {horizon}')
    first = min(commitment_steps, end_step)
    rows = np.arange(horizon, dtype=np.float64)
    fraction = (end_step - rows) / (end_step - first + 1)
    if schedule is Schedule.LINEAR:
        between = fraction
    elif schedule is Schedule.EXP:
        between = fraction * np.expm1(fraction) / np.expm1(1.0)
    else:
        between = np.full(horizon, 1.0 if schedule is Schedule.ONES else 0.0)
    weights = np.where(rows < first, 1.0, np.where(rows < end_step, between, 0.0))
    return weights.astype(np.float32)


def guidance_gains(num_steps: int, max_gain: float) -> tuple[float, ...]:
    """
    Return the gain of the guidance, γ, at each Euler step.

    :param num_steps: Euler steps, ``K``
    :param max_gain: upper limit β, also the value at τ = 0 where the formula is infinite
    :returns: ``K`` gains, step ``k`` at ``τ = k / K`` (0 is noise, 1 is data)
    :raises ValueError: if ``num_steps`` is below 1 or ``max_gain`` is negative
    Source: Real-time chunking; ``γ = min(β, (1-τ)/τ · (τ² + (1-τ)²) / (1-τ)²)``.
    """
    if num_steps < 1 or max_gain < 0:
        raise ValueError(
            f'{num_steps} steps with a maximum gain of {max_gain}: '
            'at least 1 step and a gain of at least 0 are needed'
        )
    gains = [max_gain]
    for step in range(1, num_steps):
        tau = step / num_steps
        rest = 1.0 - tau
        gains.append(min(max_gain, (tau**2 + rest**2) / (tau * rest)))
    return tuple(gains)
