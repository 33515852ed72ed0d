# SPDX-License-Identifier: Apache-2.0
"""What a websocket robot may say beyond openpi's protocol, under the key ``xinfer``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.unpacker import Array, Value, described
from xinfer_ros.setting import nearest

KEY = 'xinfer'
_MOST = 2**31 - 1
_MOST_SECONDS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """
    Everything is optional; None, or 0 for an episode and a commitment, where nothing was said.

    :param robot_id: id in the fleet
    :param budget_s: response budget of this request [s]
    :param period_s: ``TE`` [s]
    :param spacing_s: of the rows [s]
    :param executed_steps: rows consumed since the session began [steps]
    :param commitment_steps: ``d``, rows of the leftover that the robot will execute [steps]
    :param leftover: ``(steps, action_dim)`` float32, rows of the running chunk not executed yet
    :param episode: rises with each episode
    """

    robot_id: str | None = None
    budget_s: float | None = None
    period_s: float | None = None
    spacing_s: float | None = None
    executed_steps: int | None = None
    commitment_steps: int = 0
    leftover: Rows | None = None
    episode: int = 0


def wishes(observation: Mapping[str, Value]) -> Wishes:
    """
    Return what an observation says under ``xinfer``.

    :raises Rejected: an unknown key or a value of another kind, with what is allowed
    """
    said = observation.get(KEY)
    if said is None:
        return Wishes()
    if not isinstance(said, dict):
        raise Rejected(
            Reason.REJECTED_STATE, f'{KEY}: expected a dictionary; received {described(said)}'
        )
    known = [each.name for each in fields(Wishes)]
    given: dict[str, Any] = {}
    for name, value in said.items():
        if name not in known:
            raise Rejected(
                Reason.REJECTED_STATE, f'{KEY} has no key {name[:40]!r}; {nearest(name, known)}'
            )
        read, reason = _READERS[name]
        given[name] = read(value, f'{KEY}/{name}', reason)
    return Wishes(**given)


def _text(value: Value, name: str, reason: Reason) -> str:
    if not isinstance(value, str):
        raise _unlike('text', value, name, reason)
    return value


def _seconds(value: Value, name: str, reason: Reason) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not 0 < value < _MOST_SECONDS:
        raise _unlike('seconds, above 0', value, name, reason)
    return float(value)


def _count(value: Value, name: str, reason: Reason) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise _unlike(f'a whole number from 0 to {_MOST}', value, name, reason)
    return value


def _rows(value: Value, name: str, reason: Reason) -> Rows:
    """Return a leftover of any type of numbers, from an array or from nested lists."""
    if isinstance(value, list):
        value = _from_lists(value)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind not in 'iuf':
        raise _unlike('numbers of shape (steps, joints)', value, name, reason)
    with np.errstate(over='ignore'):  # what is too large becomes infinite, and is refused as such
        return value.astype(np.float32)


def _unlike(needed: str, value: Value, name: str, reason: Reason) -> Rejected:
    is_number = isinstance(value, int | float)
    shown = value if is_number else described(value)
    return Rejected(reason, f'{name}: expected {needed}; received {shown}')


def _from_lists(rows: list[Value]) -> Value:
    """Return lists of equally many numbers as an array, anything else as it is."""
    widths = {len(row) if isinstance(row, list) else -1 for row in rows}
    if len(widths) > 1 or -1 in widths:
        return rows
    flat = [each for row in rows if isinstance(row, list) for each in row]
    numbers = [each for each in flat if isinstance(each, int | float)]
    if len(numbers) < len(flat):
        return rows
    made: Array = np.array(numbers, np.float64).reshape(len(rows), max(widths, default=0))
    return made


_READERS: Mapping[str, tuple[Callable[[Value, str, Reason], object], Reason]] = {
    'robot_id': (_text, Reason.REJECTED_NAME),
    'budget_s': (_seconds, Reason.REJECTED_BUDGET),
    'period_s': (_seconds, Reason.REJECTED_PERIOD),
    'spacing_s': (_seconds, Reason.REJECTED_SPACING),
    'executed_steps': (_count, Reason.REJECTED_ORDER),
    'commitment_steps': (_count, Reason.REJECTED_COMMITMENT),
    'leftover': (_rows, Reason.REJECTED_LEFTOVER),
    'episode': (_count, Reason.REJECTED_ORDER),
}
