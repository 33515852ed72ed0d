# SPDX-License-Identifier: Apache-2.0
"""
What two arms do next to pass a cube, decided from where everything is and from nothing else.

The rules have no memory: any state leads on to approach, grip, lift, meeting, take-over and
carrying, so that a missed grip is simply tried again.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.physics.kinematics import ToolPose, rotation
from xinfer_ros.physics.scene_view import CLOSED, CUBE_HALF, OPEN

Array = npt.NDArray[np.float64]

#: A gripper that measures less is empty [1].
EMPTY = 0.4
#: What a gripper measures around a cube's faces, and per metre that the cube is wider [1, 1/m].
AROUND_FACES, PER_METRE = 0.57, 25.0
#: How much more than that it may measure and still holds, and the most that a grip measures [1].
LOOSE, WIDEST_GRIP = 0.08, 0.86
#: From here on a gripper counts as open [1].
IS_OPEN = 0.89
#: Pitch of the right tool, which grips from above [rad].
DOWN = float(np.deg2rad(60.0))
QUARTER = float(np.pi / 2)
#: Height of the grip and of the approach [m].
GRIP_Z, HOVER_Z, LIFTED_Z = 0.02, 0.12, 0.14
MEET = np.array([0.0, 0.5, 0.25])
#: Where the left tool takes hold, seen from the cube, and how far before it waits [m].
TAKE, BEFORE = np.array([0.003, 0.0, 0.0]), np.array([-0.11, 0.0, 0.0])
LEFT_WAITS = ToolPose(xyz=(-0.2, 0.5, 0.3))
LEFT_CARRIES = ToolPose(xyz=(-0.2, 0.5, 0.25), roll=QUARTER)
RIGHT_LEAVES = ToolPose(xyz=(0.07, 0.5, 0.37), pitch=DOWN)
#: How far a tool may be off the place where the next thing begins, and where it goes on [m].
CLOSE_BY, STILL_BY = 0.010, 0.020
#: Half the space between the pads: along approach, along closing, across both [m].
BETWEEN = np.array([0.026, 0.03, 0.024])
REACH = float(np.linalg.norm(BETWEEN))
#: Sideways error up to which a tool may be at grip height, and how steeply it rises beyond it.
FUNNEL, STEEPNESS = 0.010, 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """
    One tool as it stands.

    :param opening: of the gripper, 0 closed to 1 open
    """

    pose: ToolPose
    opening: float

    @property
    def point(self) -> Array:
        """Return the point between the pads ``(3,)`` [m]."""
        return np.array(self.pose.xyz)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """
    Both tools and the cube.

    :param cube: its centre ``(3,)`` [m]
    :param cube_axes: ``(3, 3)``, its axes as columns
    """

    left: Hand
    right: Hand
    cube: Array
    cube_axes: Array

    def hand(self, arm: str) -> Hand:
        """Return the tool of an arm."""
        return self.left if arm == 'left' else self.right

    def is_between(self, arm: str) -> bool:
        """Return whether the cube is between the pads of an arm."""
        away = math.dist(self.cube, self.hand(arm).pose.xyz)
        return away < REACH and bool((np.abs(self._offset(arm)) < BETWEEN).all())

    def grip(self, arm: str) -> float:
        """
        Return the most that the gripper of an arm measures when it is closed around the cube.

        Only one finger is measured: it stands out where the cube is off the middle.
        """
        pose = self.hand(arm).pose
        closing = rotation(arm, pose.pitch, pose.roll)[:, 1]
        half = CUBE_HALF * float(np.abs(self.cube_axes.T @ closing).sum())
        reach = half - CUBE_HALF + abs(float(self._offset(arm)[1]))
        return min(AROUND_FACES + PER_METRE * reach, WIDEST_GRIP - LOOSE)

    def holds(self, arm: str) -> bool:
        """Return whether an arm has the cube in its closed gripper."""
        opening = self.hand(arm).opening
        if not EMPTY < opening < WIDEST_GRIP or not self.is_between(arm):
            return False
        return opening < self.grip(arm) + LOOSE

    def _offset(self, arm: str) -> Array:
        """Return where the cube is in the frame of a tool ``(3,)`` [m]."""
        pose = self.hand(arm).pose
        offset: Array = rotation(arm, pose.pitch, pose.roll).T @ (self.cube - pose.xyz)
        return offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Where a tool shall go, and what its gripper is told: ``OPEN`` or ``CLOSED``."""

    pose: ToolPose
    gripper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """The aims of both tools."""

    left: Aim
    right: Aim


def decide(now: Situation) -> Aims:
    """Return what both tools do next."""
    if now.holds('left'):
        return _part(now)
    if now.holds('right'):
        return _meet(now)
    return Aims(left=Aim(pose=LEFT_WAITS, gripper=OPEN), right=_fetch(now))


def _fetch(now: Situation) -> Aim:
    """Approach the cube from above, in a funnel over where it is seen, and close around it."""
    tool, cube = now.right.point, now.cube
    is_low = tool[2] < GRIP_Z + (STILL_BY if now.right.opening < IS_OPEN else CLOSE_BY)
    if is_low and now.is_between('right') and now.right.opening > EMPTY:
        return Aim(pose=_at((tool[0], tool[1], GRIP_Z)), gripper=CLOSED)
    if now.right.opening < IS_OPEN:  # shut beside the cube, or not yet open
        away = _at((tool[0], tool[1], HOVER_Z)) if tool[2] < HOVER_Z else now.right.pose
        return Aim(pose=away, gripper=OPEN)
    beside = float(np.linalg.norm(tool[:2] - cube[:2]))
    height = GRIP_Z + np.clip(STEEPNESS * (beside - FUNNEL), 0.0, HOVER_Z - GRIP_Z)
    return Aim(pose=_at((cube[0], cube[1], height)), gripper=OPEN)


def _meet(now: Situation) -> Aims:
    """Lift the cube and bring it to the middle, where the left arm takes hold of it."""
    tool = now.right.point
    beside = float(np.linalg.norm(tool[:2] - MEET[:2]))
    lifted = tool[2] > LIFTED_Z or beside < CLOSE_BY
    right = _at(tuple(MEET)) if lifted else _at((tool[0], tool[1], LIFTED_Z + 0.02))
    take = now.cube + TAKE
    if np.abs(tool - MEET).max() > CLOSE_BY:
        left = Aim(pose=_across(MEET + TAKE + BEFORE), gripper=OPEN)
    else:
        left = _take(now, take)
    return Aims(left=left, right=Aim(pose=right, gripper=CLOSED))


def _take(now: Situation, take: Array) -> Aim:
    hand = now.left
    off = np.abs(hand.point - take)
    near = STILL_BY if hand.opening < IS_OPEN else CLOSE_BY
    if off.max() < near and now.is_between('left'):
        return Aim(pose=_across(take), gripper=CLOSED)
    in_line = off[1:].max() < CLOSE_BY and abs(hand.pose.roll - QUARTER) < 0.15
    ready = in_line and hand.opening > IS_OPEN
    return Aim(pose=_across(take if ready else take + BEFORE), gripper=OPEN)


def _part(now: Situation) -> Aims:
    """Let the right arm go when the left one holds, then carry the cube away."""
    right, left = now.right, now.left
    near = float(np.linalg.norm(right.point - now.cube)) < 0.08
    if near and right.opening < IS_OPEN:
        right_aim = Aim(pose=right.pose, gripper=OPEN)
    else:
        right_aim = Aim(pose=RIGHT_LEAVES, gripper=OPEN)
    left_aim = Aim(pose=left.pose if near else LEFT_CARRIES, gripper=CLOSED)
    return Aims(left=left_aim, right=right_aim)


def _at(xyz: tuple[float, ...] | Array) -> ToolPose:
    return ToolPose(xyz=(float(xyz[0]), float(xyz[1]), float(xyz[2])), pitch=DOWN)


def _across(xyz: Array) -> ToolPose:
    return ToolPose(xyz=(float(xyz[0]), float(xyz[1]), float(xyz[2])), roll=QUARTER)
