# SPDX-License-Identifier: Apache-2.0
"""Where the tool of a simulated ViperX arm is, and the joint angles that bring it somewhere."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ARMS = ('left', 'right')
#: Distance from the gripper link to the point between the finger pads [m].
TOOL_OFFSET = 0.142
#: Largest change of a joint in one step of the solver [rad].
LONGEST_STEP = 0.1
#: Wrist angle to search from: the side of the singularity that needs no half turn [rad].
BENT_WRIST = 0.6
DAMPING = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPose:
    """
    A pose of a tool; its approach direction has no sideways part.

    :param xyz: point between the finger pads, world frame [m]
    :param pitch: angle of the approach direction below the horizon [rad]
    :param roll: angle about the approach direction [rad]
    """

    xyz: tuple[float, float, float]
    pitch: float = 0.0
    roll: float = 0.0


def rotation(arm: str, pitch: float, roll: float) -> Array:
    """Return the gripper link's axes ``(3, 3)``: x approaches, the fingers close along y."""
    facing = 1.0 if arm == 'left' else -1.0
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    return np.array(
        [
            [facing * cp, facing * sp * sr, facing * sp * cr],
            [0.0, facing * cr, -facing * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def turn_between(axes: Array, wanted: Array) -> Array:
    """Return the turn that takes axes ``(3, 3)`` nearer to others, as a vector ``(3,)`` [rad]."""
    a, b = axes.T, wanted.T
    x = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    y = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    z = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return 0.5 * np.array([x[0] + x[1] + x[2], y[0] + y[1] + y[2], z[0] + z[1] + z[2]])


class ArmKinematics:
    """
    Forward and inverse kinematics of one arm, on a state of its own.

    :param model: the compiled scene
    :param arm: one of ``ARMS``
    :param posture: of the whole scene, ``(nq,)``; None: that of the model
    """

    def __init__(self, model: Any, arm: str, posture: Array | None = None) -> None:
        self.arm = arm
        self._model, self._data = model, mujoco.MjData(model)
        if posture is not None:
            self._data.qpos[:] = posture
        self._body = int(model.body(f'vx300s_{arm}/gripper_link').id)
        first = 8 * ARMS.index(arm)  # the arms stand first in gym-aloha's scene
        self._columns = slice(first, first + 6)
        self._low, self._high = model.jnt_range[self._columns].T
        self._jacobian = np.zeros((6, model.nv))

    def tool(self, joints: Array) -> tuple[Array, Array]:
        """Return the point between the pads ``(3,)`` [m] and the gripper's axes ``(3, 3)``."""
        self._data.qpos[self._columns] = joints
        return self._forward()

    def pose(self, joints: Array) -> ToolPose:
        """Return the pose of the tool; a sideways part of the approach direction is left out."""
        point, axes = self.tool(joints)
        pitch = float(np.arcsin(np.clip(-axes[2, 0], -1.0, 1.0)))
        facing = 1.0 if self.arm == 'left' else -1.0
        roll = float(np.arctan2(axes[2, 1] / max(np.cos(pitch), 1e-3), facing * axes[1, 1]))
        return ToolPose(
            xyz=(float(point[0]), float(point[1]), float(point[2])), pitch=pitch, roll=roll
        )

    def reach(self, pose: ToolPose, start: Array) -> Array:
        """
        Return the six joints [rad] that reach a pose, near ``start``.

        :raises ValueError: it is out of reach
        """
        joints, error = self.towards(pose, start, iterations=200, tolerance=1e-5)
        if error > 1e-5:
            raise ValueError(f'the {self.arm} arm does not reach {pose}')
        return joints

    def towards(
        self, pose: ToolPose, start: Array, iterations: int, tolerance: float
    ) -> tuple[Array, float]:
        """
        Return the best joints [rad] after some steps, and the largest error left [m, rad].

        Source: damped least squares (Buss, 2004), clipped to the joints' range at each step.
        """
        wanted = rotation(self.arm, pose.pitch, pose.roll)
        joints = self._data.qpos[self._columns]
        joints[:] = start
        for done in range(iterations + 1):
            point, axes = self._forward()
            error = np.concatenate([pose.xyz - point, turn_between(axes, wanted)])
            largest = float(np.abs(error).max())
            if largest < tolerance or done == iterations:
                break
            step = self._step(point, error)
            joints[:] = np.minimum(np.maximum(joints + step, self._low), self._high)
        return joints.copy(), largest

    def _step(self, point: Array, error: Array) -> Array:
        jacobian = self._jacobian
        mujoco.mj_jac(
            self._model, self._data, jacobian[:3], jacobian[3:], point.reshape(3, 1), self._body
        )
        arm = jacobian[:, self._columns]
        step: Array = arm.T @ np.linalg.solve(arm @ arm.T + DAMPING * np.eye(6), error)
        step /= max(1.0, np.abs(step).max() / LONGEST_STEP)
        return step

    def _forward(self) -> tuple[Array, Array]:
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        axes: Array = self._data.xmat[self._body].reshape(3, 3)
        point: Array = self._data.xpos[self._body] + TOOL_OFFSET * axes[:, 0]
        return point, axes
