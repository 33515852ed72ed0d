# SPDX-License-Identifier: Apache-2.0
"""When a discrete joint, such as a gripper, switches; on rows to come and on recordings alike."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SHARE = 0.3  # of a joint's range that it must move to have switched
NOISE_ROWS = 10  # typical changes between rows that noise alone may add up to
LEAST_AMPLITUDE = 0.01  # in the unit of the joint: steps of encoders and jitter of models

Values = npt.NDArray[np.floating]
Amplitudes = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """
    One switch of a discrete joint.

    :param row: the first row that has left the old level
    :param column: of the joint
    :param rises: whether the value grows; which of the two is open is the robot's affair
    """

    row: int
    column: int
    rises: bool


def switch_amplitudes(values: Values, ranges: Amplitudes | None = None) -> Amplitudes:
    """
    Return how far each joint must move to have switched, at least.

    A share of its range, so that fingers in metres and openings from 0 to 1 are served alike;
    more than what a joint that only trembles adds up to.

    :param values: ``(T, J)`` rows or measured positions
    :param ranges: ``(J,)`` widths that the joints can move in; NaN, or None for all: what
        ``values`` cover
    :returns: ``(J,)``
    """
    if len(values) < 2:
        return np.full(values.shape[1], np.inf)
    covered = ranges
    if covered is None or np.isnan(covered).any():
        seen = values.max(axis=0) - values.min(axis=0)
        covered = seen if ranges is None else np.where(np.isnan(ranges), seen, ranges)
    changes = np.sort(np.abs(values[1:] - values[:-1]), axis=0)
    typical = changes[(len(changes) - 1) // 2]
    least = np.maximum(NOISE_ROWS * typical, LEAST_AMPLITUDE)
    amplitudes: Amplitudes = np.maximum(SHARE * covered, least)
    return amplitudes


def find_switches(values: Values, amplitudes: Amplitudes) -> list[Switch]:
    """
    Return the switches of discrete joints, by row.

    A joint has switched when it has moved by its amplitude away from the farthest point that it
    has reached since its last switch. This is a hysteresis that knows no levels: a gripper that
    closes around something wide has closed, and one that opens in two moves has opened once.
    Only earlier rows decide, so rows to come may be appended without changing what was found.

    :param values: ``(T, J)`` rows or measured positions, finite
    :param amplitudes: ``(J,)``, see ``switch_amplitudes``
    """
    if not len(values):
        return []
    moved = values.max(axis=0) - values.min(axis=0) >= amplitudes
    found = [
        switch
        for column in np.flatnonzero(moved).tolist()
        for switch in _of_joint(values[:, column].tolist(), float(amplitudes[column]), column)
    ]
    return sorted(found, key=lambda switch: (switch.row, switch.column))


def _of_joint(values: list[float], amplitude: float, column: int) -> Iterator[Switch]:
    """Yield the switches of one joint; before the first, a move either way is one."""
    lowest = highest = values[0]
    rose: bool | None = None
    for row, value in enumerate(values):
        if value < lowest:
            lowest = value
        if value > highest:
            highest = value
        if value - lowest >= amplitude and rose is not True:
            rose, highest = True, value
        elif highest - value >= amplitude and rose is not False:
            rose, lowest = False, value
        else:
            continue
        yield Switch(row=row, column=column, rises=rose)
