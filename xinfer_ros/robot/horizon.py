# SPDX-License-Identifier: Apache-2.0
"""How the minimum period, and with it the execution horizon, follows what new chunks say."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.joint_values import joints_matching

AGREE_ROWS = 0.5  # disagreement below which chunks agree
DISAGREE_ROWS = 2.0  # above which they do not
PATIENCE = 3  # chunks that must agree in a row before the period grows
# Per row and joint; below this a robot stands still, and there is no motion to measure with
STILL_STEP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonSettings:
    """
    Within which bounds the minimum period moves.

    :param shortest_ns: ``TE`` at least [ns]
    :param start_ns: ``TE`` before anything was observed [ns]
    :param longest_ns: ``TE`` at most [ns]
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param compared: ``(num_joints,)`` bool; discrete joints are left out
    :param rows_are_speeds: and not positions
    """

    shortest_ns: int
    start_ns: int
    longest_ns: int
    keyframe_spacing_ns: int
    compared: npt.NDArray[np.bool_]
    rows_are_speeds: bool = False

    @classmethod
    def from_config(
        cls, config: ExecutorConfig, joint_names: tuple[str, ...]
    ) -> 'HorizonSettings | None':
        """
        Return the settings of a node, None if its period does not adapt.

        :raises ConfigError: if there is no joint to compare
        """
        if not config.horizon_adaptation:
            return None
        discrete = joints_matching(config.discrete_joints, joint_names)
        if len(discrete) == len(joint_names):
            raise ConfigError(
                f'horizon_adaptation is set, but discrete_joints is '
                f'{list(config.discrete_joints)}, which leaves no joint to compare'
            )
        return cls(
            shortest_ns=round(config.shortest_period_s * 1e9),
            start_ns=round(config.minimum_period_s * 1e9),
            longest_ns=round(config.longest_period_s * 1e9),
            keyframe_spacing_ns=round(config.keyframe_spacing_s * 1e9),
            compared=np.array([name not in discrete for name in joint_names]),
            rows_are_speeds=config.command_interface == 'velocity',
        )


class HorizonAdaptation:
    """
    Shortens ``TE`` when a new chunk disagrees with the leftover, lengthens it while they agree.

    A quarter less at once, an eighth more after ``PATIENCE`` chunks that agree, nothing between
    ``AGREE_ROWS`` and ``DISAGREE_ROWS``. The band is wider than what one change of ``TE`` can do
    to a disagreement that grows with it, up to its fourth power, so ``TE`` comes to rest. Pure:
    the same chunks give the same periods. Not thread-safe: its owner locks.

    Source: the idea that each round's execution horizon follows the confidence of its chunk is
    that of Kairos (arXiv, 2026); the signal and the rule are ours.
    """

    def __init__(self, settings: HorizonSettings) -> None:
        self._settings = settings
        self._period_ns = settings.start_ns  # where the rule wants it
        self._in_force_ns = settings.start_ns  # what the commitment makes of that
        self._agreed = 0
        self._window = -(-settings.longest_ns // settings.keyframe_spacing_ns)
        self._disagreement = 0.0

    @property
    def disagreement(self) -> float:
        """Return how far the last chunk was from the leftover [rows of motion]."""
        return self._disagreement

    def observe(self, new_rows: Rows, leftover_rows: Rows, frozen_steps: int) -> None:
        """
        Take in a new chunk beside what it replaces; row ``k`` of both is for the same step.

        Compared are the rows behind the frozen ones, as many as the longest period executes:
        a fixed window, since later rows differ more, and a shorter period leaves more of them.

        :param new_rows: ``(H, num_joints)`` float32
        :param leftover_rows: ``(m, num_joints)`` float32, as it was when the chunk came
        :param frozen_steps: first rows that repeat the leftover, and say nothing [steps]
        """
        first = max(frozen_steps, 0)
        end = min(len(new_rows), len(leftover_rows), first + self._window)
        if end <= first:
            return
        new, old = self._positions(new_rows[:end]), self._positions(leftover_rows[:end])
        distance = float(np.linalg.norm(new[first:] - old[first:], axis=1).mean())
        steps = np.linalg.norm(old[1:] - old[:-1], axis=1)
        step = float(steps.mean()) if len(steps) else 0.0
        self._disagreement = distance / max(step, STILL_STEP * old.shape[1] ** 0.5)
        self._adapt()

    def _positions(self, rows: Rows) -> Rows:
        """Return where rows put the joints that are compared, ``(n, compared)``."""
        rows = rows[:, self._settings.compared]
        if not self._settings.rows_are_speeds:
            return rows
        moved: Rows = np.cumsum(rows, axis=0) * np.float32(
            self._settings.keyframe_spacing_ns * 1e-9
        )
        return moved

    def _adapt(self) -> None:
        period_ns = self._in_force_ns
        self._agreed = self._agreed + 1 if self._disagreement < AGREE_ROWS else 0
        if self._disagreement > DISAGREE_ROWS:
            self._change(period_ns * 3 // 4)
        elif self._agreed >= PATIENCE:
            self._agreed = 0
            self._change(period_ns * 9 // 8)

    def _change(self, period_ns: int) -> None:
        settings = self._settings
        self._period_ns = min(max(period_ns, settings.shortest_ns), settings.longest_ns)
        self._in_force_ns = self._period_ns

    def period_ns(
        self, budget_class_is_tight: bool, least_ns: int = 0, most_ns: int | None = None
    ) -> int:
        """
        Return the minimum period of the next request [ns].

        :param budget_class_is_tight: precision matters: the shortest period, whatever chunks say
        :param least_ns: what the commitment allows, ``d`` rows [ns]
        :param most_ns: what it leaves of a chunk, ``H - d`` rows; stronger than ``least_ns``,
            since a robot without rows stands still; None: not known [ns]
        :returns: never less than the spacing of rows
        """
        self._in_force_ns = self._within(self._period_ns, least_ns, most_ns)
        if budget_class_is_tight:
            return self._within(self._settings.shortest_ns, least_ns, most_ns)
        return self._in_force_ns

    def _within(self, wanted_ns: int, least_ns: int, most_ns: int | None) -> int:
        period_ns = max(wanted_ns, least_ns)
        if most_ns is not None:
            period_ns = min(period_ns, most_ns)
        return max(period_ns, self._settings.keyframe_spacing_ns)
