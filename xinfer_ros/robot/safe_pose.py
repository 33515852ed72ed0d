# SPDX-License-Identifier: Apache-2.0
"""The pose to which a robot without rows is led, checked before anything moves."""

import numpy as np

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.joint_values import Values, joints_matching, values_by_joint
from xinfer_ros.robot.limits import RowLimits


def safe_pose(
    config: ExecutorConfig, joint_names: tuple[str, ...], limits: RowLimits | None
) -> Rows:
    """
    Return the safe pose, ``(num_joints,)`` float32; NaN: the joint stays where it is.

    :param limits: that the pose and the way there must keep, None: there are none
    :raises ConfigError: if it lacks a joint that is not discrete, or breaks a limit
    """
    pose = values_by_joint(config.safe_pose, joint_names, 'safe_pose')
    may_stay = joints_matching(config.discrete_joints, joint_names)
    missing = [
        name
        for name, value in zip(joint_names, pose, strict=True)
        if np.isnan(value) and name not in may_stay
    ]
    if missing:
        raise ConfigError(
            f'safe_pose has no value for {", ".join(missing)}; give one for every joint '
            'that is not discrete, as left_*=0.0'
        )
    if limits is not None:
        _check_range(pose, limits)
        _check_speed(config, pose, limits)
    return pose.astype(np.float32)


def _check_range(pose: Values, limits: RowLimits) -> None:
    for name, value, lower, upper in zip(
        limits.joint_names, pose, limits.lower, limits.upper, strict=True
    ):
        if value < lower or value > upper:  # never so for a joint that stays
            raise ConfigError(
                f'safe_pose has {value:g} for {name}; {lower:g} to {upper:g} is allowed, by '
                f'{limits.range_setting} or the URDF'
            )


def _check_speed(config: ExecutorConfig, pose: Values, limits: RowLimits) -> None:
    """Refuse a speed that a joint which is led must not have."""
    speed = config.safe_pose_speed
    by_step = limits.step / config.keyframe_spacing_s
    for name, value, *most in zip(limits.joint_names, pose, limits.velocity, by_step, strict=True):
        if not np.isnan(value) and speed > min(most):
            setting_name = 'step_limits' if most[1] < most[0] else 'velocity_limits or the URDF'
            raise ConfigError(
                f'safe_pose_speed is {speed:g}; {name} may move at {min(most):g} per second, by '
                f'{setting_name}'
            )
