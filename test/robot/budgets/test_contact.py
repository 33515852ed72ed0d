# SPDX-License-Identifier: Apache-2.0
"""Budgets while the robot pushes against something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.robot.budgets.contact import ContactBudget

from .situations import CLASSES, MS, situation

NAN = float('nan')


def _source(release: float = 0.7) -> ContactBudget:
    """Return a source that watches elbow and wrist, not the gripper."""
    return ContactBudget(np.array([10.0, 2.0, NAN]), release, CLASSES)


def _budgets(source: ContactBudget, *efforts: tuple[float, float, float]) -> list[int | None]:
    wishes = [source.wish(situation(effort=effort)) for effort in efforts]
    return [None if wish is None else wish.budget_ns // MS for wish in wishes]


def test_contact_begins_at_the_threshold_and_ends_below_its_share() -> None:
    efforts = [9.9, 10.0, 9.0, 7.1, 6.9, 9.9]
    found = _budgets(_source(), *[(effort, 0, 0) for effort in efforts])
    assert found == [400, 90, 90, 90, 400, 400]


def test_contact_counts_in_both_directions() -> None:
    assert _budgets(_source(), (-10, 0, 0), (0, -2, 0), (0, 1.9, 0)) == [90, 90, 90]


def test_joint_that_is_not_watched_says_nothing() -> None:
    assert _budgets(_source(), (0, 0, 99)) == [400]


def test_reason_names_the_joint_that_is_farthest_beyond_its_threshold() -> None:
    wish = _source().wish(situation(effort=(-11, 3, 0)))
    assert wish is not None
    assert wish.reason == 'contact: wrist at effort 3'


@pytest.mark.parametrize('effort', [None, (NAN, NAN, 5)])
def test_without_efforts_there_is_no_opinion(effort: tuple[float, float, float] | None) -> None:
    assert _source().wish(situation(effort=effort)) is None


def test_missing_effort_of_one_joint_leaves_the_others() -> None:
    assert _budgets(_source(), (NAN, 3, 0), (NAN, 0, 0)) == [90, 400]


def test_contact_outlasts_a_gap_in_the_measurements() -> None:
    source = _source()
    assert _budgets(source, (10, 0, 0)) == [90]
    assert source.wish(situation()) is None
    assert _budgets(source, (8, 0, 0)) == [90]


@given(st.lists(st.floats(0, 20), min_size=1, max_size=40), st.floats(0, 1))
def test_budget_changes_only_when_a_threshold_is_passed(
    efforts: list[float], release: float
) -> None:
    found = _budgets(_source(release), *[(effort, 0, 0) for effort in efforts])
    for effort, budget in zip(np.array(efforts, np.float32), found, strict=True):
        if effort >= 10:
            assert budget == 90
        elif effort < 10 * release:
            assert budget == 400
