# SPDX-License-Identifier: Apache-2.0
"""Budgets that are tight while the robot pushes against something."""

import numpy as np

from xinfer_ros.robot.budgets.budget_source import BudgetClasses, BudgetContext, BudgetWish
from xinfer_ros.robot.joint_values import Values


class ContactBudget:
    """
    Tight while the effort of a joint says contact.

    Contact of a joint begins at its effort, of either sign, and ends below a share of it, so that
    an effort that trembles around the threshold does not make the budget tremble.

    :param efforts: ``(num_joints,)`` at which contact begins [N m; N], NaN: joint not watched
    :param release: share of it below which contact ends, 0 to 1
    :param classes: the two budgets
    """

    def __init__(self, efforts: Values, release: float, classes: BudgetClasses) -> None:
        self._begin, self._end = efforts, efforts * release
        self._touching = np.zeros(len(efforts), np.bool_)
        self._classes = classes

    def wish(self, context: BudgetContext) -> BudgetWish | None:
        """Return the budget; no opinion while no watched joint measures its effort."""
        if context.effort is None:
            return None
        effort = np.abs(context.effort)
        if np.isnan(effort - self._begin).all():
            return None
        self._touching = effort >= np.where(self._touching, self._end, self._begin)
        if not self._touching.any():
            return self._classes.wide('contact: none')
        joint = int(np.argmax(np.where(self._touching, effort / self._begin, 0.0)))
        return self._classes.tight(
            f'contact: {context.joint_names[joint]} at effort {context.effort[joint]:.3g}'
        )
