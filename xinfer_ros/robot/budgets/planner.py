# SPDX-License-Identifier: Apache-2.0
"""The budget that a task planner has published."""

from xinfer_ros.core.request import check_budget
from xinfer_ros.robot.budgets.budget_source import BudgetContext, BudgetWish


class PlannerBudget:
    """
    Wishes for what the Budget topic said last; it stays in force until it is replaced.

    No opinion before the first message. Not thread-safe: its owner locks.
    """

    def __init__(self) -> None:
        self._wish: BudgetWish | None = None

    def replace(self, budget_ns: int, source: str) -> None:
        """
        Take in a message of the Budget topic.

        :param budget_ns: response budget ``b`` [ns]
        :param source: who set it and why; the reason that is shown
        :raises Rejected: REJECTED_BUDGET, and the budget before stays in force
        """
        check_budget(budget_ns)
        self._wish = BudgetWish(budget_ns=budget_ns, reason=source.strip() or 'planner')

    def wish(self, context: BudgetContext) -> BudgetWish | None:
        """Return the budget in force."""
        return self._wish
