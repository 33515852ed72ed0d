# SPDX-License-Identifier: Apache-2.0
"""What maps the situation of a robot to a response budget."""

from dataclasses import dataclass
from typing import Protocol

from xinfer_ros.core.chunk import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetContext:
    """
    What a robot is doing at the instant of a request.

    :param now_ns: on the clock of the executor [ns]
    :param joint_names: in command order
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param executed: ``(n, num_joints)`` float32, rows of late, newest last
    :param planned: ``(m, num_joints)`` float32, the leftover, the next row first
    :param effort: ``(num_joints,)`` measured [N m; N], NaN where not, None if nowhere
    """

    now_ns: int
    joint_names: tuple[str, ...]
    keyframe_spacing_ns: int
    executed: Rows
    planned: Rows
    effort: Rows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWish:
    """
    A response budget and why, as in ``gripper: right_gripper switches in 0.42 s``.

    :param budget_ns: response budget ``b`` [ns]
    :param reason: for a person; begins with the name of the source
    """

    budget_ns: int
    reason: str


class BudgetSource(Protocol):
    """Wishes for a budget; belongs to one robot and may remember, but reads no clock."""

    def wish(self, context: BudgetContext) -> BudgetWish | None:
        """Return the budget wanted now; None: no opinion."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetClasses:
    """
    The two budgets between which a source chooses.

    :param tight_ns: while precision matters [ns]
    :param wide_ns: otherwise [ns]
    """

    tight_ns: int
    wide_ns: int

    def tight(self, reason: str) -> BudgetWish:
        """Return the wish of a source for which precision matters."""
        return BudgetWish(budget_ns=self.tight_ns, reason=reason)

    def wide(self, reason: str) -> BudgetWish:
        """Return the wish of a source for which time does not press."""
        return BudgetWish(budget_ns=self.wide_ns, reason=reason)
