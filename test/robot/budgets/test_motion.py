# SPDX-License-Identifier: Apache-2.0
"""Budgets before fast motion and turns."""

import numpy as np
import pytest

from xinfer_ros.robot.budgets.motion import MotionBudget

from .situations import CLASSES, MS, rows_of, situation

WATCHED = np.array([True, True, False])
ROWS = np.arange(60)


def _source(rows_are_speeds: bool = False) -> MotionBudget:
    return MotionBudget(
        WATCHED, speed=1.0, turn_speed=0.2, rows_are_speeds=rows_are_speeds, classes=CLASSES
    )


def _reason(elbow: np.ndarray, rows_are_speeds: bool = False) -> str:
    wish = _source(rows_are_speeds).wish(situation(planned=rows_of(elbow=elbow)))
    assert wish is not None
    assert wish.budget_ns // MS == (400 if wish.reason == 'motion: slow' else 90)
    return wish.reason


@pytest.mark.parametrize('way', [1, -1])
def test_fast_joint_is_tight(way: int) -> None:
    assert _reason(way * ROWS * 0.024) == 'motion: elbow moves at 1.2/s'
    assert _reason(way * ROWS * 0.018) == 'motion: slow'


def test_turn_is_tight_even_if_the_joint_rests_between() -> None:
    assert _reason(np.abs(ROWS - 9) * 0.01) == 'motion: elbow turns'
    assert _reason(np.interp(ROWS, [0, 6, 10, 20], [0, 0.05, 0.05, -0.1])) == 'motion: elbow turns'


def test_tremble_is_no_turn() -> None:
    assert _reason((ROWS % 2) * 0.003) == 'motion: slow'


def test_what_is_planned_after_a_wide_answer_does_not_count() -> None:
    """A wide answer comes within 20 rows."""
    assert _reason(np.where(ROWS > 20, 1.0, 0.0)) == 'motion: slow'
    assert _reason(np.where(ROWS > 18, 1.0, 0.0)) == 'motion: elbow moves at 50/s'


def test_step_from_the_row_executed_last_counts() -> None:
    context = situation(executed=rows_of(elbow=[5, 0]), planned=rows_of(elbow=[0.5, 0.5]))
    wish = _source().wish(context)
    assert wish is not None
    assert wish.reason == 'motion: elbow moves at 25/s'


def test_gripper_that_switches_is_no_fast_joint() -> None:
    wish = _source().wish(situation(planned=rows_of(gripper=ROWS % 2)))
    assert wish is not None
    assert wish.reason == 'motion: slow'


def test_rows_that_are_speeds_are_taken_as_such() -> None:
    assert _reason(np.full(60, -1.2), rows_are_speeds=True) == 'motion: elbow moves at 1.2/s'
    assert _reason(np.sign(ROWS - 5) * 0.3, rows_are_speeds=True) == 'motion: elbow turns'
    assert _reason(np.full(60, 0.9), rows_are_speeds=True) == 'motion: slow'


@pytest.mark.parametrize('rows', [0, 1])
def test_without_motion_to_come_there_is_no_opinion(rows: int) -> None:
    assert _source().wish(situation(planned=rows_of(elbow=[0.0] * rows))) is None
