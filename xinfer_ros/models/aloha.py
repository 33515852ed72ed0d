# SPDX-License-Identifier: Apache-2.0
"""The bimanual ALOHA robot that the shipped models and episodes are for; without torch."""

import numpy as np

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.models.normalise import QuantileStatistics

CAMERA_NAMES = ('top', 'left_wrist', 'right_wrist')
CAMERA_HEIGHT, CAMERA_WIDTH = 224, 320
HORIZON = 16
# Joint limits of one ViperX 300 S arm [rad], from its published URDF; the gripper is 0 to 1.
ARM_LIMITS = (
    ('waist', -3.14158, 3.14158),
    ('shoulder', -1.85005, 1.25664),
    ('elbow', -1.76278, 1.60570),
    ('forearm_roll', -3.14158, 3.14158),
    ('wrist_angle', -1.86750, 2.23402),
    ('wrist_rotate', -3.14158, 3.14158),
    ('gripper', 0.0, 1.0),
)
_SIDES = ('left', 'right')


def aloha_contract(name: str, max_instruction_bytes: int) -> ModelContract:
    """
    Return the contract of a model for this robot: three cameras, two arms of seven joints.

    :param name: of the model
    :param max_instruction_bytes: longest instruction that the model takes [bytes]
    """
    return ModelContract(
        name=name,
        cameras=tuple(
            CameraSpec(name=camera, height=CAMERA_HEIGHT, width=CAMERA_WIDTH)
            for camera in CAMERA_NAMES
        ),
        joint_names=tuple(f'{side}_{joint}' for side in _SIDES for joint, _, _ in ARM_LIMITS),
        horizon=HORIZON,
        max_commitment_steps=HORIZON // 2,
        max_instruction_bytes=max_instruction_bytes,
    )


def aloha_statistics() -> QuantileStatistics:
    """Return the joint limits as quantiles, so that no answer leaves them."""
    limits = np.array([row[1:] for row in ARM_LIMITS] * len(_SIDES), np.float32)
    return QuantileStatistics(q01=limits[:, 0].copy(), q99=limits[:, 1].copy())
