# SPDX-License-Identifier: Apache-2.0
"""Budgets that are tight while the robot is about to move fast, or to turn back."""

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.budgets.budget_source import BudgetClasses, BudgetContext, BudgetWish


class MotionBudget:
    """
    Tight if a joint is planned to be fast, or to turn, before a wide answer would come.

    What is planned later can still be replaced by that answer. A joint turns if it is faster than
    ``turn_speed`` one way and later the other way, however slowly it passes the point between.

    :param watched: ``(num_joints,)`` bool; discrete joints always switch fast
    :param speed: that is fast [1/s]
    :param turn_speed: on both sides of a turn that counts [1/s]
    :param rows_are_speeds: rows are velocities, not positions
    :param classes: the two budgets
    """

    def __init__(
        self,
        watched: npt.NDArray[np.bool_],
        *,
        speed: float,
        turn_speed: float,
        rows_are_speeds: bool,
        classes: BudgetClasses,
    ) -> None:
        self._watched = np.flatnonzero(watched)
        self._speed, self._turn_speed = speed, turn_speed
        self._rows_are_speeds = rows_are_speeds
        self._classes = classes

    def wish(self, context: BudgetContext) -> BudgetWish | None:
        """Return the budget; no opinion without rows to come."""
        speeds = self._speeds(context)
        if not len(speeds):
            return None
        highest, lowest = speeds.max(axis=0), speeds.min(axis=0)
        fastest = np.maximum(highest, -lowest)
        joint = int(fastest.argmax())
        if fastest[joint] > self._speed:
            return self._classes.tight(
                f'motion: {self._name(context, joint)} moves at {fastest[joint]:.3g}/s'
            )
        turning = np.minimum(highest, -lowest)  # the slower of the two ways
        joint = int(turning.argmax())
        if turning[joint] > self._turn_speed:
            return self._classes.tight(f'motion: {self._name(context, joint)} turns')
        return self._classes.wide('motion: slow')

    def _name(self, context: BudgetContext, joint: int) -> str:
        return context.joint_names[int(self._watched[joint])]

    def _speeds(self, context: BudgetContext) -> Rows:
        """Return planned speeds ``(n, watched)``, from the row executed last on."""
        num_rows = -(-self._classes.wide_ns // context.keyframe_spacing_ns)
        planned = context.planned[:num_rows].take(self._watched, axis=1)
        if self._rows_are_speeds:
            return planned
        if len(context.executed):
            planned = np.concatenate((context.executed[-1:, self._watched], planned))
        spacing_s = np.float32(context.keyframe_spacing_ns * 1e-9)
        speeds: Rows = (planned[1:] - planned[:-1]) / spacing_s
        return speeds
