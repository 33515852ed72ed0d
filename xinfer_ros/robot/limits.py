# SPDX-License-Identifier: Apache-2.0
"""What rows may ask of each joint: a range, a speed, and a change from one row to the next."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.robot.joint_values import joints_matching, ranges_by_joint, values_by_joint
from xinfer_ros.robot.urdf import JointLimit, UrdfLimits
from xinfer_ros.setting import nearest

Limits = npt.NDArray[np.float64]
# A limit and the row that reaches it exactly differ by the rounding of float32, relative to values
_DUST = 1e-6
_LARGEST = 1e6  # value up to which dust grows, so that an infinite one is never within a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """
    The limits of every joint; a chunk that breaks one is refused whole, never clipped.

    :param joint_names: in command order
    :param lower: ``(num_joints,)`` least value of a row, -inf without limit
    :param upper: ``(num_joints,)`` largest value of a row, inf without limit
    :param velocity: ``(num_joints,)`` largest change between rows over time, inf: none [1/s]
    :param step: ``(num_joints,)`` largest change from one row to the next, inf: none
    :param range_setting: where lower and upper are set, for the remedy
    """

    joint_names: tuple[str, ...]
    lower: Limits
    upper: Limits
    velocity: Limits
    step: Limits
    range_setting: str = 'position_limits'

    def check(
        self, rows: Rows, before: Rows | None, keyframe_spacing_ns: int, first_row: int = 0
    ) -> None:
        """
        Refuse rows that ask too much of a joint.

        :param rows: ``(n, num_joints)`` float32, one command each, first the one that is next
        :param before: ``(num_joints,)`` the row executed before them or, if there is none, what
            was measured; None: the step to the first row is free
        :param keyframe_spacing_ns: spacing of rows, Delta [ns]
        :param first_row: what the error text calls the first row, 0-based
        :raises Rejected: REJECTED_LIMITS
        """
        largest = np.abs(rows).max(axis=0, initial=0.0)
        dust = _DUST * (1.0 + np.minimum(largest, _LARGEST))
        inside = (rows >= self.lower - dust) & (rows <= self.upper + dust)
        if not inside.all():
            raise self._out_of_range(rows, inside, first_row)
        chain = rows if before is None else np.concatenate((before[np.newaxis], rows))
        steps = np.abs(np.diff(chain, axis=0))
        slow = steps <= self._most_per_step(keyframe_spacing_ns) + dust
        if not slow.all():
            first_step = first_row + (before is None)  # nothing leads to the first row
            raise self._too_fast(steps, slow, first_step, keyframe_spacing_ns)

    def allow_step(self, before: Rows, row: Rows) -> bool:
        """
        Return whether a row may follow another one, in spite of those left out between them.

        Their speed does not count: as many ticks were missed as rows are left out.

        :param before: ``(num_joints,)`` float32
        :param row: ``(num_joints,)`` float32
        """
        dust = _DUST * (1.0 + np.minimum(np.abs(row), _LARGEST))
        return bool((np.abs(row - before) <= self.step + dust).all())

    def _most_per_step(self, keyframe_spacing_ns: int) -> Limits:
        return np.minimum(self.step, self.velocity * (keyframe_spacing_ns * 1e-9))

    def _out_of_range(self, rows: Rows, inside: npt.NDArray[np.bool_], first_row: int) -> Rejected:
        row, joint = (int(i) for i in np.argwhere(~inside)[0])
        name = self.joint_names[joint]
        return Rejected(
            Reason.REJECTED_LIMITS,
            f'row {first_row + row} has {rows[row, joint]:.6g} for {name}; '
            f'{self.lower[joint]:.6g} to {self.upper[joint]:.6g} is allowed; '
            f'if the robot may do it, change {self.range_setting}',
        )

    def _too_fast(
        self,
        steps: Rows,
        slow: npt.NDArray[np.bool_],
        first_step: int,
        keyframe_spacing_ns: int,
    ) -> Rejected:
        row, joint = (int(i) for i in np.argwhere(~slow)[0])
        step, spacing_s = float(steps[row, joint]), keyframe_spacing_ns * 1e-9
        if self.step[joint] <= self.velocity[joint] * spacing_s:
            found = f'by {step:.6g} from the row before; {self.step[joint]:.6g}'
            setting_name = 'step_limits'
        else:
            found = f'at {step / spacing_s:.6g} per second; {self.velocity[joint]:.6g}'
            setting_name = 'velocity_limits'
        return Rejected(
            Reason.REJECTED_LIMITS,
            f'row {first_step + row} moves {self.joint_names[joint]} {found} is allowed; '
            f'if the robot may do it, change {setting_name}',
        )

    @classmethod
    def from_config(
        cls, config: ExecutorConfig, joint_names: tuple[str, ...], urdf: UrdfLimits | None
    ) -> 'RowLimits | None':
        """
        Return the limits of a robot, None if nothing is limited.

        Settings replace what the URDF says. The URDF's velocity does not hold for discrete
        joints: a gripper is told to switch from one row to the next, and moves as it can.

        :param joint_names: in command order
        :param urdf: limits by joint, None if there is no URDF
        :raises ConfigError: if an entry fits no joint, the URDF lacks a joint that no entry
            names, or a joint could not move at all
        """
        settings = (config.position_limits, config.velocity_limits, config.step_limits)
        if urdf is None and not any(settings):
            return None
        if urdf is not None:
            _check_known(urdf, joint_names, [entry for part in settings for entry in part])
        discrete = joints_matching(config.discrete_joints, joint_names)
        velocity = _velocities(config, joint_names, urdf or {}, discrete)
        step = values_by_joint(config.step_limits, joint_names, 'step_limits', default=np.inf)
        _check_movable(joint_names, step, 'step_limits')
        if config.command_interface == 'velocity':
            return cls._of_speeds(config, joint_names, velocity, step)
        lower, upper = _ranges(config, joint_names, urdf or {})
        return cls(joint_names=joint_names, lower=lower, upper=upper, velocity=velocity, step=step)

    @classmethod
    def _of_speeds(
        cls, config: ExecutorConfig, joint_names: tuple[str, ...], velocity: Limits, step: Limits
    ) -> 'RowLimits':
        """Return the limits of rows that are speeds themselves."""
        if config.position_limits:
            raise ConfigError(
                f'position_limits is {list(config.position_limits)} with command_interface '
                'velocity; rows say no positions: give velocity_limits'
            )
        return cls(
            joint_names=joint_names,
            lower=-velocity,
            upper=velocity,
            velocity=np.full(len(joint_names), np.inf),
            step=step,
            range_setting='velocity_limits',
        )


def _check_known(urdf: UrdfLimits, joint_names: tuple[str, ...], entries: list[str]) -> None:
    """Refuse a URDF without one of the joints, unless a setting speaks of that joint."""
    patterns = [entry.partition('=')[0] for entry in entries]
    named = joints_matching(patterns, joint_names)
    missing = [name for name in joint_names if name not in urdf and name not in named]
    if missing:
        raise ConfigError(
            f'the URDF limits no joint {missing[0]}; {nearest(missing[0], sorted(urdf))}; if '
            f'there is none such, give position_limits {missing[0]}=LOWER:UPPER'
        )


def _ranges(
    config: ExecutorConfig, joint_names: tuple[str, ...], urdf: UrdfLimits
) -> tuple[Limits, Limits]:
    given = ranges_by_joint(config.position_limits, joint_names, 'position_limits')
    limits = [urdf.get(name, JointLimit()) for name in joint_names]
    stated = np.array([[limit.lower for limit in limits], [limit.upper for limit in limits]])
    lower, upper = np.where(np.isnan(given), stated, given)
    for name, low, high in zip(joint_names, lower, upper, strict=True):
        if not low < high:
            raise ConfigError(
                f'the URDF lets {name} be at {low:g} to {high:g}, nowhere else; '
                f'give position_limits {name}=LOWER:UPPER'
            )
    return lower, upper


def _velocities(
    config: ExecutorConfig,
    joint_names: tuple[str, ...],
    urdf: UrdfLimits,
    discrete: tuple[str, ...],
) -> Limits:
    given = values_by_joint(config.velocity_limits, joint_names, 'velocity_limits')
    limits = [
        JointLimit() if name in discrete else urdf.get(name, JointLimit()) for name in joint_names
    ]
    velocity = np.where(np.isnan(given), [limit.velocity for limit in limits], given)
    _check_movable(joint_names, velocity, 'velocity_limits')
    return velocity


def _check_movable(joint_names: tuple[str, ...], largest: Limits, setting_name: str) -> None:
    for name, value in zip(joint_names, largest, strict=True):
        if not value > 0.0:
            raise ConfigError(
                f'{name} may move by {value:g} at most; more than 0 is needed: '
                f'give {setting_name} {name}=…'
            )
