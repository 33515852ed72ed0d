# SPDX-License-Identifier: Apache-2.0
"""Which joints each command topic gets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.joint_values import joints_matching
from xinfer_ros.setting import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRoute:
    """
    One command topic.

    :param topic: its name
    :param kind: message type, as in ``command_types``
    :param joint_names: its joints, in the order in which its controller wants them
    :param columns: ``(num_joints,)`` where they stand in a row
    """

    topic: str
    kind: str
    joint_names: tuple[str, ...]
    columns: npt.NDArray[np.intp]


def command_routes(
    config: ExecutorConfig, joint_names: tuple[str, ...]
) -> tuple[CommandRoute, ...]:
    """
    Return the command topics with their joints.

    Joints stand in the order in which ``command_joints`` names them; those of one pattern in the
    order of the robot.

    :raises ConfigError: if a pattern fits no joint, or a joint is on no topic, or twice on one
    """
    topics = config.command_topics
    kinds = config.command_types * (len(topics) if len(config.command_types) == 1 else 1)
    lists = config.command_joints or ('*',) * len(topics)
    routes = []
    for topic, kind, patterns in zip(topics, kinds, lists, strict=True):
        names = _names(topic, patterns.split(), joint_names)
        columns = np.array([joint_names.index(name) for name in names], np.intp)
        routes.append(CommandRoute(topic=topic, kind=kind, joint_names=names, columns=columns))
    reached = {name for route in routes for name in route.joint_names}
    missing = [name for name in joint_names if name not in reached]
    if missing:
        raise ConfigError(
            f'no command topic has {", ".join(missing)}; add them to one of command_joints, '
            'or leave them out of joint_names'
        )
    return tuple(routes)


def _names(topic: str, patterns: Sequence[str], joint_names: tuple[str, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for pattern in patterns:
        found = joints_matching((pattern,), joint_names)
        if not found:
            raise ConfigError(
                f'command_joints of {topic} has {pattern}, which is no joint; '
                f'{nearest(pattern, list(joint_names))}'
            )
        names += found
    if len(set(names)) != len(names) or not names:
        raise ConfigError(
            f'command_joints of {topic} is {" ".join(patterns)!r}, which gives '
            f'{" ".join(names) or "no joint"}; every joint once, at least one'
        )
    return tuple(names)
