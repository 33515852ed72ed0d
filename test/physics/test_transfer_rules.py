# SPDX-License-Identifier: Apache-2.0
"""What two arms do next, decided from one instant."""

import numpy as np
import pytest

from xinfer_ros.physics.kinematics import ToolPose
from xinfer_ros.physics.scene_view import CLOSED, OPEN
from xinfer_ros.physics.transfer_rules import (
    DOWN,
    GRIP_Z,
    HOVER_Z,
    LEFT_CARRIES,
    MEET,
    QUARTER,
    RIGHT_LEAVES,
    TAKE,
    Hand,
    Situation,
    decide,
)

FAR_LEFT = Hand(pose=ToolPose(xyz=(-0.2, 0.5, 0.3)), opening=0.95)
AWAY = Hand(pose=ToolPose(xyz=(0.15, 0.5, 0.34), pitch=DOWN), opening=0.95)
AROUND = 0.57
CUBE = (0.1, 0.5, 0.02)


def _right(xyz: tuple[float, float, float], opening: float) -> Hand:
    return Hand(pose=ToolPose(xyz=xyz, pitch=DOWN), opening=opening)


def _left(xyz: tuple[float, float, float], opening: float) -> Hand:
    return Hand(pose=ToolPose(xyz=xyz, roll=QUARTER), opening=opening)


def _now(right: Hand, left: Hand = FAR_LEFT, cube: tuple[float, float, float] = CUBE) -> Situation:
    return Situation(left=left, right=right, cube=np.array(cube), cube_axes=np.eye(3))


def test_open_tool_beside_the_cube_comes_high_and_sinks_over_it() -> None:
    beside = decide(_now(_right((0.2, 0.5, 0.3), 0.95))).right
    above = decide(_now(_right((0.1, 0.5, 0.12), 0.95))).right
    assert beside.pose.xyz == pytest.approx((0.1, 0.5, HOVER_Z))
    assert above.pose.xyz == pytest.approx((0.1, 0.5, GRIP_Z))
    assert beside.gripper == above.gripper == OPEN


def test_tool_at_the_cube_closes() -> None:
    assert decide(_now(_right(CUBE, 0.95))).right.gripper == CLOSED


def test_tool_that_closed_beside_the_cube_opens_and_rises() -> None:
    aim = decide(_now(_right((0.1, 0.56, 0.02), 0.1))).right
    assert aim.gripper == OPEN
    assert aim.pose.xyz == pytest.approx((0.1, 0.56, HOVER_Z))


def test_cube_that_is_gripped_is_lifted_before_it_is_carried() -> None:
    low = decide(_now(_right(CUBE, AROUND))).right
    lifted = decide(_now(_right((0.1, 0.5, 0.2), AROUND), cube=(0.1, 0.5, 0.2))).right
    assert low.pose.xyz[:2] == pytest.approx(CUBE[:2])
    assert low.pose.xyz[2] > CUBE[2]
    assert lifted.pose.xyz == pytest.approx(tuple(MEET))
    assert low.gripper == lifted.gripper == CLOSED


@pytest.mark.parametrize(
    ('off', 'opening', 'gripper'), [(0.1, 0.95, OPEN), (0.0, 0.95, CLOSED), (0.0, 0.8, CLOSED)]
)
def test_left_tool_closes_only_around_the_cube(off: float, opening: float, gripper: float) -> None:
    x, y, z = MEET + TAKE
    right = _right(tuple(MEET.tolist()), AROUND)
    now = _now(right, _left((x - off, y, z), opening), tuple(MEET.tolist()))
    aim = decide(now).left
    assert aim.gripper == gripper
    assert aim.pose.xyz == pytest.approx((x, y, z))


def test_left_tool_that_is_not_in_line_goes_back_before_it_advances() -> None:
    x, y, z = MEET + TAKE
    right = _right(tuple(MEET.tolist()), AROUND)
    now = _now(right, _left((x - 0.05, y + 0.03, z), 0.95), tuple(MEET.tolist()))
    assert decide(now).left.pose.xyz[0] < x - 0.1


def test_right_tool_lets_go_where_it_is_once_the_left_one_holds_and_then_leaves() -> None:
    point = tuple(MEET.tolist())
    holding = decide(_now(_right(point, AROUND), _left(point, AROUND), point))
    assert holding.right.gripper == OPEN
    assert holding.right.pose.xyz == pytest.approx(point)
    assert holding.left.gripper == CLOSED
    opened = decide(_now(_right(point, 0.95), _left(point, AROUND), point))
    assert opened.right.pose == RIGHT_LEAVES
    assert opened.left.pose.xyz == pytest.approx(point)
    parted = decide(_now(AWAY, _left(point, AROUND), point))
    assert parted.left.pose == LEFT_CARRIES


def test_turned_cube_is_held_with_a_wider_gripper() -> None:
    turn = np.deg2rad(45.0)
    axes = np.array(
        [[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0], [0.0, 0.0, 1.0]]
    )
    right = _right(CUBE, 0.76)
    straight = _now(right)
    turned = Situation(left=FAR_LEFT, right=right, cube=straight.cube, cube_axes=axes)
    assert not straight.holds('right')
    assert turned.holds('right')
