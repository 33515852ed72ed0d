# SPDX-License-Identifier: Apache-2.0
"""Which joints each command topic gets."""

from typing import Any

import pytest

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.command_routes import command_routes

JOINTS = ('left_waist', 'left_gripper', 'right_waist', 'right_gripper')


def _routes(**settings: Any) -> list[tuple[str, str, list[str]]]:
    routes = command_routes(ExecutorConfig(**settings), JOINTS)
    return [(route.topic, route.kind, list(route.joint_names)) for route in routes]


def test_one_topic_gets_every_joint_unless_told_otherwise() -> None:
    assert _routes() == [('joint_trajectory', 'joint_trajectory', list(JOINTS))]


def test_patterns_give_joints_in_the_robots_order_and_lists_in_their_own() -> None:
    routes = command_routes(
        ExecutorConfig(
            command_topics=('left/commands', 'right/commands'),
            command_types=('float64_multi_array',),
            command_joints=('left_*', 'right_gripper right_waist'),
        ),
        JOINTS,
    )
    assert [route.kind for route in routes] == ['float64_multi_array'] * 2
    assert [list(route.columns) for route in routes] == [[0, 1], [3, 2]]


@pytest.mark.parametrize(
    ('lists', 'words'),
    [
        (('left_*', 'right_waist'), 'no command topic has right_gripper'),
        (('left_*', 'rihgt_*'), 'rihgt_.*, which is no joint'),
        (('left_*', 'right_* right_waist'), 'every joint once'),
        (('left_*', ' '), 'at least one'),
    ],
)
def test_wrong_lists_are_named(lists: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _routes(command_topics=('a', 'b'), command_joints=lists)
