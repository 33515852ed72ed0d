# SPDX-License-Identifier: Apache-2.0
"""What a robot is commanded while there is no row, and what is said last."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.safe_pose import safe_pose


class HoldMode(Enum):
    """
    What holds; ``hold`` of the executor's settings.

    LAST_POSITION: the last commanded positions are repeated.
    ZERO_VELOCITY: rows are velocities, and zero is commanded.
    SAFE_POSE: the robot is led to a pose, at a speed, from where it was commanded last.
    """

    LAST_POSITION = 'last_position'
    ZERO_VELOCITY = 'zero_velocity'
    SAFE_POSE = 'safe_pose'


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeOutput:
    """
    The last command, after which nobody commands any more.

    :param values: ``(num_joints,)`` float32 for a controller that steps there at once
    :param goal: ``(num_joints,)`` float32 for a controller that takes a time to get there
    :param duration_ns: that time [ns]
    """

    values: Rows
    goal: Rows
    duration_ns: int


class Hold:
    """
    Keeps what was commanded last and goes on from there; before the first row it holds nothing.

    One thread commands; ``safe_output`` may be called by another one, which must not wait for it.

    :param mode: what holds
    :param spacing_ns: time between two commands [ns]
    :param safe_pose: ``(num_joints,)`` float32, for SAFE_POSE; NaN: the joint stays, as a gripper
        that holds something must
    :param speed: of the fastest joint on the way to it [1/s]
    """

    def __init__(
        self, mode: HoldMode, spacing_ns: int, safe_pose: Rows | None = None, speed: float = 1.0
    ) -> None:
        if (mode is HoldMode.SAFE_POSE) != (safe_pose is not None):
            raise ValueError(f'{mode} with safe_pose {safe_pose}')
        self._mode, self._spacing_ns, self._speed = mode, spacing_ns, speed
        self._safe_pose = safe_pose
        self._last: Rows | None = None

    @classmethod
    def from_config(
        cls, config: ExecutorConfig, joint_names: tuple[str, ...], limits: RowLimits | None
    ) -> 'Hold':
        """
        Return what the settings ask for.

        :param limits: that the way to the safe pose must keep, None: there are none
        :raises ConfigError: if the safe pose lacks a joint that is not discrete, or if it or the
            way there breaks a limit
        """
        is_velocity = config.command_interface == 'velocity'
        auto = HoldMode.ZERO_VELOCITY if is_velocity else HoldMode.LAST_POSITION
        mode, pose = auto if config.hold == 'auto' else HoldMode(config.hold), None
        if mode is HoldMode.SAFE_POSE:
            pose = safe_pose(config, joint_names, limits)
        spacing_ns = round(config.keyframe_spacing_s * 1e9)
        return cls(mode, spacing_ns, pose, config.safe_pose_speed)

    @property
    def moves(self) -> bool:
        """Return whether the robot is somewhere else after it was held."""
        return self._mode is HoldMode.SAFE_POSE

    @property
    def holds(self) -> bool:
        """Return whether there is anything to hold."""
        return self._last is not None

    def executed(self, values: Rows) -> None:
        """Take in a row that is commanded now."""
        self._last = values

    def step(self) -> Rows | None:
        """Return what is commanded at this tick in place of a row, None before the first row."""
        last = self._last
        if last is None:
            return None
        if self._mode is HoldMode.ZERO_VELOCITY:
            self._last = np.zeros_like(last)
        elif self._safe_pose is not None:
            way = self._goal(last) - last
            reach = self._speed * self._spacing_ns / 1e9
            longest = float(np.abs(way).max(initial=0.0))
            share = 1.0 if longest <= reach else reach / longest
            self._last = (last + np.float32(share) * way).astype(np.float32)
        return self._last

    def safe_output(self) -> SafeOutput | None:
        """Return the last command, None if nothing was commanded yet; from any thread."""
        last = self._last
        if last is None:
            return None
        if self._mode is HoldMode.ZERO_VELOCITY:
            last = np.zeros_like(last)
        goal, duration_ns = self._goal(last), self._spacing_ns
        if self._safe_pose is not None:
            distance = float(np.abs(goal - last).max(initial=0.0))
            duration_ns = max(round(distance / self._speed * 1e9), self._spacing_ns)
        return SafeOutput(values=last, goal=goal, duration_ns=duration_ns)

    def _goal(self, last: Rows) -> Rows:
        if self._safe_pose is None:
            return last
        return np.where(np.isnan(self._safe_pose), last, self._safe_pose)

    def forget(self) -> None:
        """
        Hold nothing any more: what was commanded belongs to an episode that is over.

        A velocity is not forgotten, since a joint would move on with it: zero is commanded.
        """
        if self._mode is not HoldMode.ZERO_VELOCITY:
            self._last = None
