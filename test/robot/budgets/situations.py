# SPDX-License-Identifier: Apache-2.0
"""What a robot with two arm joints and a gripper may be doing."""

from collections.abc import Sequence

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.budgets.budget_source import BudgetClasses, BudgetContext

JOINTS = ('elbow', 'wrist', 'gripper')
MS = 1_000_000
SPACING_NS = 20 * MS
CLASSES = BudgetClasses(tight_ns=90 * MS, wide_ns=400 * MS)


def rows_of(
    elbow: Sequence[float] = (), wrist: float = 0.0, gripper: Sequence[float] = ()
) -> Rows:
    """Return rows ``(n, 3)``; what is not given stays at 0."""
    rows = np.zeros((max(len(elbow), len(gripper)), 3), np.float32)
    rows[:, 1] = wrist
    for column, values in ((0, elbow), (2, gripper)):
        if len(values):
            rows[:, column] = values
    return rows


def situation(
    executed: Rows | None = None,
    planned: Rows | None = None,
    effort: Sequence[float] | None = None,
    now_ns: int = 0,
) -> BudgetContext:
    """Return a context with rows 20 ms apart."""
    return BudgetContext(
        now_ns=now_ns,
        joint_names=JOINTS,
        keyframe_spacing_ns=SPACING_NS,
        executed=rows_of() if executed is None else executed,
        planned=rows_of() if planned is None else planned,
        effort=None if effort is None else np.array(effort, np.float32),
    )
