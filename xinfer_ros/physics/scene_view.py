# SPDX-License-Identifier: Apache-2.0
"""What a model is shown of the scene, in numbers in place of pictures."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ARM_JOINTS = (
    'waist', 'shoulder', 'elbow', 'forearm_roll', 'wrist_angle', 'wrist_rotate', 'gripper',
)  # fmt: skip
JOINT_NAMES = tuple(f'{arm}_{joint}' for arm in ('left', 'right') for joint in ARM_JOINTS)
GRIPPERS = ('left_gripper', 'right_gripper')
#: What a gripper is told [1].
OPEN, CLOSED = 1.0, 0.0
#: Half an edge of the cube [m].
CUBE_HALF = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneView:
    """
    The scene at one instant; no speeds, as in one picture.

    :param joints: measured, ``(14,)`` [rad; gripper 0 closed to 1 open], left arm first
    :param cube: centre of the cube ``(3,)`` [m]
    :param cube_axes: axes of the cube as columns ``(3, 3)``
    """

    joints: Array
    cube: Array
    cube_axes: Array
