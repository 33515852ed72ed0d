# SPDX-License-Identifier: Apache-2.0
"""A scripted expert that plans a chunk of the cube transfer from one observation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.physics.kinematics import ArmKinematics, ToolPose
from xinfer_ros.physics.scene_view import CLOSED, SceneView
from xinfer_ros.physics.transfer_rules import EMPTY, Aim, Hand, Situation, decide

Array = npt.NDArray[np.float64]

#: Fastest motion of a tool [m/s], turn of it [rad/s], and how soon it nears its aim [s].
SPEED, TURN_SPEED, SOON_S = 0.30, 2.5, 0.12
#: How fast a gripper moves [1/s].
GRIPPER_SPEED = 2.5
IK_ITERATIONS, IK_TOLERANCE, IK_STRIDE = 4, 5e-4, 3


class TransferExpert:
    """
    Plans by acting the rules out in its head, where the cube rests unless it is held.

    It sees one instant and knows no speed, as a model that is shown one picture.

    :param model: the compiled scene
    :param spacing_ns: time between two rows [ns]
    """

    def __init__(self, model: Any, spacing_ns: int) -> None:
        self._spacing_s = spacing_ns / 1e9
        self._arms = {arm: ArmKinematics(model, arm) for arm in ('left', 'right')}

    def plan(self, view: SceneView, num_rows: int, promised: Array) -> Array:
        """
        Return joint targets ``(num_rows, 14)``.

        :param view: what was seen
        :param promised: first rows, already fixed ``(d, 14)``; the plan goes on from their end
        """
        now, fixed = self._situation(view), promised[:num_rows]
        for command in fixed:
            now = self._followed(now, command)
        poses: dict[str, list[ToolPose]] = {'left': [now.left.pose], 'right': [now.right.pose]}
        grippers: list[tuple[float, float]] = []
        for _ in range(num_rows - len(fixed)):
            aims = decide(now)
            left = self._nearer(now.left.pose, aims.left)
            right = self._nearer(now.right.pose, aims.right)
            poses['left'].append(left)
            poses['right'].append(right)
            grippers.append((aims.left.gripper, aims.right.gripper))
            now = self._moved(now, (left, right), grippers[-1])
        start = fixed[-1] if len(fixed) else view.joints
        told = np.array(grippers).reshape(-1, 2)
        free = np.column_stack(
            [
                self._joints('left', poses['left'], start[:6]),
                told[:, 0],
                self._joints('right', poses['right'], start[7:13]),
                told[:, 1],
            ]
        )
        return np.concatenate([fixed, free])

    def _situation(self, view: SceneView) -> Situation:
        joints = view.joints
        left, right = self._arms['left'].pose(joints[:6]), self._arms['right'].pose(joints[7:13])
        return Situation(
            left=Hand(pose=left, opening=float(joints[6])),
            right=Hand(pose=right, opening=float(joints[13])),
            cube=view.cube,
            cube_axes=view.cube_axes,
        )

    def _followed(self, now: Situation, command: Array) -> Situation:
        """Return where a fixed row leads."""
        poses = (self._arms['left'].pose(command[:6]), self._arms['right'].pose(command[7:13]))
        return self._moved(now, poses, (float(command[6]), float(command[13])))

    def _joints(self, arm: str, poses: Sequence[ToolPose], start: Array) -> Array:
        """
        Return the joints ``(rows, 6)`` of all poses but the first, whose joints are ``start``.

        Solved for every ``IK_STRIDE``-th pose and the last, even between.
        """
        last = len(poses) - 1
        solved, joints = [0], [start]
        for row in [*range(IK_STRIDE, last, IK_STRIDE), *([last] if last else [])]:
            if poses[row] == poses[solved[-1]]:
                found = joints[-1]
            else:
                found, _ = self._arms[arm].towards(
                    poses[row], joints[-1], IK_ITERATIONS, IK_TOLERANCE
                )
            solved.append(row)
            joints.append(found)
        rows, ends = np.arange(1, last + 1), np.array(joints)
        return np.column_stack([np.interp(rows, solved, column) for column in ends.T])

    def _nearer(self, pose: ToolPose, aim: Aim) -> ToolPose:
        """Return the pose one row later, on the straight way to an aim."""
        share = min(1.0, self._spacing_s / SOON_S)
        way = share * (np.array(aim.pose.xyz) - pose.xyz)
        way *= min(1.0, SPEED * self._spacing_s / max(float(np.linalg.norm(way)), 1e-9))
        most = TURN_SPEED * self._spacing_s
        turns = share * np.array([aim.pose.pitch - pose.pitch, aim.pose.roll - pose.roll])
        pitch, roll = np.minimum(np.maximum(turns, -most), most)
        x, y, z = way + pose.xyz
        return ToolPose(
            xyz=(float(x), float(y), float(z)),
            pitch=pose.pitch + float(pitch),
            roll=pose.roll + float(roll),
        )

    def _moved(
        self, now: Situation, poses: Sequence[ToolPose], grippers: Sequence[float]
    ) -> Situation:
        """Return the situation after the tools moved; a held cube goes with its tool."""
        cube = now.cube
        for arm, before, pose in (('right', now.right, poses[1]), ('left', now.left, poses[0])):
            if now.holds(arm):
                cube = now.cube + (np.array(pose.xyz) - before.pose.xyz)
        hands = (
            Hand(pose=pose, opening=self._opening(now, arm, told))
            for arm, pose, told in zip(('left', 'right'), poses, grippers, strict=True)
        )
        left, right = hands
        return Situation(left=left, right=right, cube=cube, cube_axes=now.cube_axes)

    def _opening(self, now: Situation, arm: str, told: float) -> float:
        """Return the opening one row later; a cube stops a gripper that closes around it."""
        opening = now.hand(arm).opening
        end = max(told, CLOSED)
        if end < opening and opening > EMPTY and now.is_between(arm):
            end = max(end, min(opening, now.grip(arm)))
        most = GRIPPER_SPEED * self._spacing_s
        return opening + min(max(end - opening, -most), most)
