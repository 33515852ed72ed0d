# SPDX-License-Identifier: Apache-2.0
"""Budgets that are tight around the switches of grippers."""

from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.switches import LEAST_AMPLITUDE, Switch, find_switches, switch_amplitudes
from xinfer_ros.robot.budgets.budget_source import BudgetClasses, BudgetContext, BudgetWish
from xinfer_ros.robot.joint_values import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """A switch that has been executed."""

    joint: str
    at_ns: int


class GripperBudget:
    """
    Tight from some time before to some time after a discrete joint switches.

    Switches are found in the rows of late and in the leftover. How far a joint must move for one
    follows from its range: the one that is known, else the one that its rows have covered so far.

    :param columns: of the discrete joints
    :param ranges: ``(len(columns),)`` widths that they can move in, NaN where not known
    :param before_ns: time before a switch that is tight [ns]
    :param after_ns: time after a switch that is tight [ns]
    :param classes: the two budgets
    """

    def __init__(
        self,
        columns: tuple[int, ...],
        ranges: Values,
        *,
        before_ns: int,
        after_ns: int,
        classes: BudgetClasses,
    ) -> None:
        self._columns = np.array(columns, np.intp)
        self._ranges, self._is_known = ranges, ~np.isnan(ranges)
        self._before_ns, self._after_ns = before_ns, after_ns
        self._classes = classes
        self._lowest = np.full(len(columns), np.inf)
        self._highest = np.full(len(columns), -np.inf)
        self._past: _Past | None = None

    def wish(self, context: BudgetContext) -> BudgetWish | None:
        """Return the budget; no opinion without rows to come, unless a switch is just over."""
        rows = np.concatenate((context.executed, context.planned)).take(self._columns, axis=1)
        if len(rows):
            upcoming = self._sort_out(self._switches(rows), context)
            if upcoming is not None:
                return self._classes.tight(f'gripper: {upcoming}')
        past = self._past
        if past is not None and context.now_ns - past.at_ns <= self._after_ns:
            age_s = (context.now_ns - past.at_ns) * 1e-9
            return self._classes.tight(f'gripper: {past.joint} switched {age_s:.2f} s ago')
        return self._classes.wide('gripper: no switch near') if len(context.planned) else None

    def _switches(self, rows: Rows) -> list[Switch]:
        lowest, highest = rows.min(axis=0), rows.max(axis=0)
        self._lowest = np.minimum(self._lowest, lowest)
        self._highest = np.maximum(self._highest, highest)
        if float((highest - lowest).max()) < LEAST_AMPLITUDE:
            return []  # at rest, as most of the time
        ranges = np.where(self._is_known, self._ranges, self._highest - self._lowest)
        return find_switches(rows, switch_amplitudes(rows, ranges))

    def _sort_out(self, switches: list[Switch], context: BudgetContext) -> str | None:
        """Remember the last switch executed; return the next one in words, if it is near."""
        newest = len(context.executed) - 1  # the row of this instant
        for switch in switches:
            offset_ns = (switch.row - newest) * context.keyframe_spacing_ns
            joint = context.joint_names[self._columns[switch.column]]
            if offset_ns <= 0:
                self._past = _Past(joint=joint, at_ns=context.now_ns + offset_ns)
            elif offset_ns <= self._before_ns:
                return f'{joint} switches in {offset_ns * 1e-9:.2f} s'
            else:
                break
        return None
