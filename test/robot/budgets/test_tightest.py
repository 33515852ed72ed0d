# SPDX-License-Identifier: Apache-2.0
"""How the wishes of several sources become one budget."""

from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.robot.budgets.budget_source import BudgetWish
from xinfer_ros.robot.budgets.constant import ConstantBudget
from xinfer_ros.robot.budgets.planner import PlannerBudget
from xinfer_ros.robot.budgets.tightest import TightestBudget

from .situations import MS, rows_of, situation

OTHERWISE_NS = 180 * MS


def _planner(budget_ms: int, source: str = '') -> PlannerBudget:
    planner = PlannerBudget()
    planner.replace(budget_ms * MS, source)
    return planner


def test_constant_is_the_same_whatever_the_robot_does() -> None:
    source = ConstantBudget(70 * MS)
    for context in (
        situation(),
        situation(planned=rows_of(elbow=[0, 9])),
        situation(effort=[9] * 3),
    ):
        assert source.wish(context) == BudgetWish(budget_ns=70 * MS, reason='constant')


def test_without_an_opinion_the_budget_is_that_of_the_settings() -> None:
    wish = TightestBudget((PlannerBudget(),), OTHERWISE_NS).wish(situation())
    assert wish == BudgetWish(budget_ns=OTHERWISE_NS, reason='constant')


def test_wider_opinion_replaces_the_budget_of_the_settings() -> None:
    wish = TightestBudget((_planner(400),), OTHERWISE_NS).wish(situation())
    assert wish.budget_ns == 400 * MS


@given(st.lists(st.integers(5, 500), min_size=1, max_size=6))
def test_tightest_wins_and_the_first_of_equals(budgets_ms: list[int]) -> None:
    sources = [_planner(ms, f'source {place}') for place, ms in enumerate(budgets_ms)]
    wish = TightestBudget(sources, OTHERWISE_NS).wish(situation())
    assert wish.budget_ns == min(budgets_ms) * MS
    assert wish.reason == f'source {budgets_ms.index(min(budgets_ms))}'
