# SPDX-License-Identifier: Apache-2.0
"""The budget sources by name, as settings choose them."""

from collections.abc import Callable, Mapping

import numpy as np

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.budgets.budget_source import BudgetClasses, BudgetSource
from xinfer_ros.robot.budgets.contact import ContactBudget
from xinfer_ros.robot.budgets.gripper import GripperBudget
from xinfer_ros.robot.budgets.motion import MotionBudget
from xinfer_ros.robot.joint_values import joints_matching, values_by_joint
from xinfer_ros.robot.limits import RowLimits


def sources_from_config(
    config: ExecutorConfig, joint_names: tuple[str, ...], limits: RowLimits | None = None
) -> tuple[BudgetSource, ...]:
    """
    Return new sources for one robot, in the order of ``budget_sources``.

    :param joint_names: in command order
    :param limits: of its rows; they say how far a gripper opens
    :raises ConfigError: if a source has no joint to watch
    """
    makers: Mapping[str, Callable[[], BudgetSource]] = {
        'gripper': lambda: _gripper(config, joint_names, limits),
        'contact': lambda: _contact(config, joint_names),
        'motion': lambda: _motion(config, joint_names),
    }
    return tuple(makers[name]() for name in config.budget_sources)


def _classes(config: ExecutorConfig) -> BudgetClasses:
    return BudgetClasses(
        tight_ns=round(config.tight_budget_s * 1e9), wide_ns=round(config.wide_budget_s * 1e9)
    )


def _gripper(
    config: ExecutorConfig, joint_names: tuple[str, ...], limits: RowLimits | None
) -> GripperBudget:
    discrete = joints_matching(config.discrete_joints, joint_names)
    if not discrete:
        raise ConfigError(
            f'budget_sources has gripper, but discrete_joints is {list(config.discrete_joints)}, '
            f'which names none of {", ".join(joint_names)}'
        )
    columns = tuple(joint_names.index(name) for name in discrete)
    ranges = np.full(len(columns), np.nan)
    if limits is not None:
        widths = (limits.upper - limits.lower)[list(columns)]
        ranges = np.where(np.isfinite(widths), widths, np.nan)
    return GripperBudget(
        columns,
        ranges,
        before_ns=round(config.gripper_before_s * 1e9),
        after_ns=round(config.gripper_after_s * 1e9),
        classes=_classes(config),
    )


def _contact(config: ExecutorConfig, joint_names: tuple[str, ...]) -> ContactBudget:
    efforts = values_by_joint(config.contact_efforts, joint_names, 'contact_efforts')
    for name, effort in zip(joint_names, efforts, strict=True):
        if effort <= 0.0:
            raise ConfigError(
                f'contact_efforts gives {name} {effort:g}; more than 0 is needed, '
                'contact counts in both directions'
            )
    return ContactBudget(efforts, config.contact_release, _classes(config))


def _motion(config: ExecutorConfig, joint_names: tuple[str, ...]) -> MotionBudget:
    discrete = joints_matching(config.discrete_joints, joint_names)
    watched = np.array([name not in discrete for name in joint_names])
    if not watched.any():
        raise ConfigError(
            f'budget_sources has motion, but discrete_joints is {list(config.discrete_joints)}, '
            'which leaves no joint to watch'
        )
    return MotionBudget(
        watched,
        speed=config.motion_speed,
        turn_speed=config.motion_turn_speed,
        rows_are_speeds=config.command_interface == 'velocity',
        classes=_classes(config),
    )
