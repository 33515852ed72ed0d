# SPDX-License-Identifier: Apache-2.0
"""What an executor of chunks needs to know of its robot and of what its operator wants."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.robot.action_queue import ActionQueue
from xinfer_ros.robot.budgets.budget_source import BudgetSource
from xinfer_ros.robot.budgets.registry import sources_from_config
from xinfer_ros.robot.budgets.tightest import TightestBudget
from xinfer_ros.robot.commitment import CommitmentEstimator
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.horizon import HorizonSettings
from xinfer_ros.robot.joint_values import joints_matching
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.merge_rule import MergeRule, Replacement, TemporalEnsemble
from xinfer_ros.robot.motion_log import MotionLog
from xinfer_ros.robot.urdf import UrdfLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """
    What an executor of chunks needs to know.

    :param robot_id: unique in the fleet
    :param joint_names: the robot's joints in its own order
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param minimum_period_ns: ``TE`` [ns]
    :param backoff_ns: pause after a refusal [ns]
    :param commitment_steps: ``d``, or where it starts if it is measured [steps]
    :param budget_ns: response budget ``b`` if nothing else has one [ns]
    :param commitment_margin_steps: rows that ``d`` is more than was measured; None: ``d`` is fixed
    :param min_commitment_steps: the least measured ``d`` [steps]
    :param max_commitment_steps: the largest measured ``d``, stronger than the least [steps]
    :param mode: how chunks follow each other
    :param ensemble_decay: how much less a newer chunk weighs, in an ensemble
    :param discrete_joints: those of ``joint_names`` that switch and are never blended
    :param limits: what every row must keep; None: anything finite
    :param horizon: within which bounds ``TE`` follows what chunks say; None: it does not
    :param tight_budget_ns: a budget that is not wider is one of the tight class [ns]
    :param budget_sources: what makes budgets beside the Budget topic
    :param rows_are_velocities: and not positions
    """

    robot_id: str
    joint_names: tuple[str, ...]
    keyframe_spacing_ns: int
    minimum_period_ns: int
    backoff_ns: int
    commitment_steps: int
    budget_ns: int
    commitment_margin_steps: int | None = None
    min_commitment_steps: int = 1
    max_commitment_steps: int = 1000
    mode: ExecutionMode = ExecutionMode.RTC
    ensemble_decay: float = 0.01
    discrete_joints: tuple[str, ...] = ()
    limits: RowLimits | None = None
    horizon: HorizonSettings | None = None
    tight_budget_ns: int = 0
    budget_sources: tuple[BudgetSource, ...] = ()
    rows_are_velocities: bool = False

    @classmethod
    def from_config(
        cls,
        config: ExecutorConfig,
        robot_id: str,
        joint_names: tuple[str, ...],
        urdf: UrdfLimits | None = None,
    ) -> 'ExecutorSettings':
        """
        Return the settings of a node in integer nanoseconds.

        :param joint_names: as the robot calls them
        :param urdf: limits by joint, None if there is no URDF
        :raises ConfigError: if a setting names a joint that the robot does not have
        """
        is_measured = config.commitment == 'measured'
        limits = RowLimits.from_config(config, joint_names, urdf)
        return cls(
            robot_id=robot_id,
            joint_names=joint_names,
            keyframe_spacing_ns=round(config.keyframe_spacing_s * 1e9),
            minimum_period_ns=round(config.minimum_period_s * 1e9),
            backoff_ns=round(config.refusal_backoff_s * 1e9),
            commitment_steps=config.commitment_steps,
            budget_ns=round(config.response_budget_s * 1e9),
            commitment_margin_steps=config.commitment_margin_steps if is_measured else None,
            min_commitment_steps=config.min_commitment_steps,
            max_commitment_steps=config.max_commitment_steps,
            mode=ExecutionMode(config.execution_mode),
            ensemble_decay=config.ensemble_decay,
            discrete_joints=joints_matching(config.discrete_joints, joint_names),
            limits=limits,
            horizon=HorizonSettings.from_config(config, joint_names),
            tight_budget_ns=round(config.tight_budget_s * 1e9),
            budget_sources=sources_from_config(config, joint_names, limits),
            rows_are_velocities=config.command_interface == 'velocity',
        )

    @property
    def discrete(self) -> npt.NDArray[np.bool_]:
        """Return which joints switch, ``(num_joints,)``."""
        return np.array([name in self.discrete_joints for name in self.joint_names], np.bool_)

    def commitment_estimator(self) -> CommitmentEstimator | None:
        """Return what measures ``d``, None if it is fixed."""
        if self.commitment_margin_steps is None:
            return None
        return CommitmentEstimator(
            self.keyframe_spacing_ns,
            self.commitment_steps,
            self.commitment_margin_steps,
            self.min_commitment_steps,
            self.max_commitment_steps,
        )

    def action_queue(self) -> ActionQueue:
        """Return an empty queue that keeps the limits."""
        spacing_ns = self.keyframe_spacing_ns
        return ActionQueue(len(self.joint_names), self.merge_rule(), self.limits, spacing_ns)

    def motion_log(self) -> MotionLog:
        """Return a log of the rows to be executed; switches are no jumps."""
        return MotionLog(~self.discrete, self.keyframe_spacing_ns, self.rows_are_velocities)

    def budget(self, planner: BudgetSource) -> TightestBudget:
        """Return the combined sources of budgets, a task planner's wishes among them."""
        return TightestBudget((*self.budget_sources, planner), self.budget_ns)

    def merge_rule(self) -> MergeRule:
        """Return what is played of a new chunk and older ones."""
        if self.mode is ExecutionMode.ENSEMBLE:
            return TemporalEnsemble(self.ensemble_decay, self.discrete)
        return Replacement()
