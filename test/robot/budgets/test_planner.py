# SPDX-License-Identifier: Apache-2.0
"""The budget that a task planner has published."""

import pytest

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.budgets.budget_source import BudgetWish
from xinfer_ros.robot.budgets.planner import PlannerBudget

from .situations import MS, situation


def _planner(budget_ms: int, source: str = '') -> PlannerBudget:
    planner = PlannerBudget()
    planner.replace(budget_ms * MS, source)
    return planner


def test_planner_has_no_opinion_before_its_first_message() -> None:
    assert PlannerBudget().wish(situation()) is None


def test_planner_stays_in_force_until_it_is_replaced() -> None:
    planner = _planner(60, 'planner: insertion')
    for now_ns in (0, 10**12):
        assert planner.wish(situation(now_ns=now_ns)) == BudgetWish(
            budget_ns=60 * MS, reason='planner: insertion'
        )
    planner.replace(300 * MS, ' ')
    assert planner.wish(situation()) == BudgetWish(budget_ns=300 * MS, reason='planner')


@pytest.mark.parametrize('budget_ns', [-1, 0, 999_999, 60_000_000_001])
def test_budget_that_can_not_be_meant_leaves_the_planner_as_it_was(budget_ns: int) -> None:
    planner = _planner(60, 'insertion')
    with pytest.raises(Rejected) as caught:
        planner.replace(budget_ns, 'typing error')
    assert caught.value.reason is Reason.REJECTED_BUDGET
    assert planner.wish(situation()) == BudgetWish(budget_ns=60 * MS, reason='insertion')
