# SPDX-License-Identifier: Apache-2.0
"""Budgets around the switches of grippers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.budgets.gripper import GripperBudget

from .situations import CLASSES, MS, SPACING_NS, rows_of, situation

NUM_ROWS = 200
PLANNED = 75


def _source(before_ms: int = 1000, after_ms: int = 500, width: float = 1.0) -> GripperBudget:
    return GripperBudget(
        (2,),
        np.array([width]),
        before_ns=before_ms * MS,
        after_ns=after_ms * MS,
        classes=CLASSES,
    )


def _closing_at(row: int) -> Rows:
    """Return 4 s of rows in which the gripper closes at a row."""
    return rows_of(gripper=np.arange(NUM_ROWS) >= row)


def _reasons(source: GripperBudget, rows: Rows, every: int = 1) -> dict[int, tuple[int, str]]:
    """Return budget [ms] and reason at each row just executed; half a second is remembered."""
    found = {}
    for newest in range(0, NUM_ROWS - PLANNED, every):
        context = situation(
            executed=rows[max(newest - 24, 0) : newest + 1],
            planned=rows[newest + 1 : newest + 1 + PLANNED],
            now_ns=newest * SPACING_NS,
        )
        wish = source.wish(context)
        assert wish is not None
        found[newest] = (wish.budget_ns // MS, wish.reason)
    return found


def test_budget_is_tight_from_one_second_before_to_half_a_second_after_a_switch() -> None:
    found = _reasons(_source(), _closing_at(80))
    assert {newest for newest, (budget, _) in found.items() if budget == 90} == set(range(30, 106))
    assert {budget for budget, _ in found.values()} == {90, 400}


def test_reason_names_joint_and_time() -> None:
    found = _reasons(_source(), _closing_at(80))
    assert found[59][1] == 'gripper: gripper switches in 0.42 s'
    assert found[80][1] == 'gripper: gripper switched 0.00 s ago'
    assert found[91][1] == 'gripper: gripper switched 0.22 s ago'
    assert found[0][1] == 'gripper: no switch near'


@pytest.mark.parametrize('every', [1, 9, 25])
def test_switch_is_remembered_for_longer_than_the_rows_that_are_shown(every: int) -> None:
    found = _reasons(_source(before_ms=0, after_ms=1500), _closing_at(20), every)
    tight = [newest for newest, (budget, _) in found.items() if budget == 90]
    assert tight == [newest for newest in found if 20 <= newest <= 95]


def test_overlapping_intervals_are_one() -> None:
    rows = _closing_at(60)
    rows[80:, 2] = 0.0
    found = _reasons(_source(), rows)
    tight = [newest for newest, (budget, _) in found.items() if budget == 90]
    assert tight == list(range(10, 106))


def test_range_is_learned_where_none_is_known() -> None:
    """In a range of 4 cm, 4 cm is a switch; after an opening of 1 it is none."""
    source = _source(width=np.nan)
    small = situation(planned=0.04 * _closing_at(20)[:PLANNED])
    found = [source.wish(small), source.wish(situation(planned=_closing_at(20)[:PLANNED]))]
    assert [wish is not None and wish.budget_ns // MS for wish in found] == [90, 90]
    later = source.wish(small)
    assert later is not None
    assert later.budget_ns == CLASSES.wide_ns


def test_nothing_is_said_before_there_are_rows() -> None:
    assert _source().wish(situation()) is None


def test_starved_robot_is_tight_just_after_a_switch_and_then_says_nothing() -> None:
    source, executed = _source(), _closing_at(20)[:22]
    wish = source.wish(situation(executed=executed))
    assert wish is not None
    assert wish.reason == 'gripper: gripper switched 0.02 s ago'
    assert source.wish(situation(executed=_closing_at(90)[:22], now_ns=600 * MS)) is None


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 9))
def test_tight_rows_are_the_intervals_around_the_switches(gaps: list[int], every: int) -> None:
    switches = [row for row in np.cumsum(gaps).tolist() if row < NUM_ROWS]
    rows = rows_of(gripper=np.searchsorted(switches, np.arange(NUM_ROWS), side='right') % 2)
    for newest, (budget, _) in _reasons(_source(), rows, every).items():
        near = any(-50 <= newest - row <= 25 for row in switches)
        assert budget == (90 if near else 400)
