# SPDX-License-Identifier: Apache-2.0
"""The budget of a robot whose needs never change."""

from xinfer_ros.robot.budgets.budget_source import BudgetContext, BudgetWish


class ConstantBudget:
    """
    Wishes for the same budget, whatever the robot does.

    :param budget_ns: response budget ``b`` [ns]
    """

    def __init__(self, budget_ns: int) -> None:
        self._wish = BudgetWish(budget_ns=budget_ns, reason='constant')

    def wish(self, context: BudgetContext) -> BudgetWish:
        """Return the budget."""
        return self._wish
