# SPDX-License-Identifier: Apache-2.0
"""How the wishes of several sources become one budget."""

from collections.abc import Sequence

from xinfer_ros.robot.budgets.budget_source import BudgetContext, BudgetSource, BudgetWish
from xinfer_ros.robot.budgets.constant import ConstantBudget


class TightestBudget:
    """
    The tightest wish wins, the earlier source where two are equal, and brings its reason.

    Every source is asked each time, since some remember what they have seen.

    :param sources: whose wishes count, in order
    :param otherwise_ns: the budget if none of them has an opinion [ns]
    """

    def __init__(self, sources: Sequence[BudgetSource], otherwise_ns: int) -> None:
        self._sources = tuple(sources)
        self._otherwise = ConstantBudget(otherwise_ns)

    def wish(self, context: BudgetContext) -> BudgetWish:
        """Return the budget of the next request."""
        wishes = [source.wish(context) for source in self._sources]
        opinions = [wish for wish in wishes if wish is not None]
        if not opinions:
            return self._otherwise.wish(context)
        return min(opinions, key=lambda wish: wish.budget_ns)
