# SPDX-License-Identifier: Apache-2.0
"""Rows of joints between robot units and model space, absolute or relative to the state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.models.normalise import Statistics

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpace:
    """
    How a model sees actions.

    Where it was trained on steps relative to the current state, a leftover is expressed anew for
    every request: the same path is another one seen from another state.

    :param statistics: of what the model sees, relative or not
    :param relative: ``(action_dim,)`` bool, joints that are relative to the state; None: no joint
    :param limits: low and high, ``(action_dim,)`` robot units, answers are clipped to them; None
        for every trained model
    """

    statistics: Statistics
    relative: npt.NDArray[np.bool_] | None = None
    limits: tuple[Rows, Rows] | None = None

    @property
    def dim(self) -> int:
        """Return the number of joints."""
        return self.statistics.dim

    def to_model(self, rows: Rows, state: Rows) -> Rows:
        """
        Return rows in model space.

        :param rows: ``(H, action_dim)`` robot units, absolute
        :param state: ``(action_dim,)`` robot units, at the same observation
        :returns: ``(H, action_dim)`` float32
        """
        return self.statistics.normalise(rows.astype(np.float64) - self._origin(state))

    def to_robot(self, rows: Rows, state: Rows) -> Rows:
        """Return the inverse of ``to_model``, within the limits."""
        seen = self.statistics.unnormalise(rows)
        actions = (seen + self._origin(state)).astype(np.float32)
        return actions if self.limits is None else np.clip(actions, *self.limits)

    def _origin(self, state: Rows) -> npt.NDArray[np.float64]:
        wide = state.astype(np.float64)
        return np.zeros_like(wide) if self.relative is None else np.where(self.relative, wide, 0.0)


def relative_joints(
    names: Sequence[str] | None, absolute: Sequence[str], action_dim: int
) -> npt.NDArray[np.bool_]:
    """
    Return which joints are relative to the state.

    :param names: of the joints; None: unknown, then all are relative, as in training
    :param absolute: names, or parts of names, of joints that stay absolute; case does not count
    :param action_dim: number of joints; those without a name are relative
    :returns: ``(action_dim,)`` bool
    Source: LeRobot, relative_actions_processor.
    """
    parts = [part.lower() for part in absolute if part]
    relative = np.ones(action_dim, np.bool_)
    for joint, name in enumerate((names or ())[:action_dim]):
        relative[joint] = not any(part in name.lower() for part in parts)
    return relative
