# SPDX-License-Identifier: Apache-2.0
"""gym-aloha's cube transfer without pictures: two arms, a table, a cube that may drift on it."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from gym_aloha.constants import (
    ASSETS_DIR,
    DT,
    START_ARM_POSE,
    normalize_puppet_gripper_position,
    unnormalize_puppet_gripper_position,
)
from gym_aloha.utils import sample_box_pose

from xinfer_ros.physics.scene_view import CUBE_HALF, SceneView

Array = npt.NDArray[np.float64]

#: gym-aloha's control step [ns].
CONTROL_NS = round(DT * 1e9)
#: Above this the cube's centre is off the table [m].
OFF_TABLE = CUBE_HALF + 0.006
#: So heavy that nothing on a sliding table slows it [kg].
TABLE_KG = 1e6
#: Name of the joint on which a table slides; the first of the scene.
RAIL = 'table/rail'


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """
    A motion of the table's surface along y, to and fro.

    :param speed: 0 for a table that rests [m/s]
    :param low: where it turns, y of the cube [m]
    :param high: likewise [m]
    """

    speed: float = 0.0
    low: float = 0.42
    high: float = 0.58


def load_model(*, sliding: bool = False) -> Any:
    """
    Return gym-aloha's compiled scene of the cube transfer.

    :param sliding: whether the table may slide along y, dragging by friction what lies on it
    """
    path = str(ASSETS_DIR / 'bimanual_viperx_transfer_cube.xml')
    if not sliding:
        return mujoco.MjModel.from_xml_path(path)
    spec = mujoco.MjSpec.from_file(path)
    table = spec.body('table')
    table.add_joint(name=RAIL, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0.0, 1.0, 0.0])
    table.mass, table.inertia, table.explicitinertial = TABLE_KG, [TABLE_KG] * 3, True
    return spec.compile()


class TransferScene:
    """
    The scene, stepped at gym-aloha's control rate.

    :param model: from :func:`load_model`, sliding if the drift is to have an effect; not changed
    :param seed: of the cube's place (gym-aloha's sampler) and of the drift's first direction
    :param drift: how the cube moves while it lies on the table
    """

    def __init__(self, model: Any, seed: int, drift: Drift) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        self._drift = drift
        self._sense = 1.0 if np.random.default_rng(seed).random() < 0.5 else -1.0
        self._substeps = round(DT / model.opt.timestep)
        self._first = int(model.joint('vx300s_left/waist').qposadr[0])  # of the robot in qpos
        names = (
            'red_box', 'table', 'vx300s_left/10_left_gripper_finger',
            'vx300s_right/10_left_gripper_finger',
        )  # fmt: skip
        ids = (int(model.geom(name).id) for name in names)
        self._red_box, self._table, self._left_pad, self._right_pad = ids
        self._box = int(model.body('box').id)
        pose = sample_box_pose(seed)
        pose[2] = CUBE_HALF  # on the table, not dropped onto it
        self._data.qpos[self._first :] = (*START_ARM_POSE, *pose)
        self._data.ctrl[:] = START_ARM_POSE
        mujoco.mj_forward(model, self._data)

    def view(self) -> SceneView:
        """Return what can be seen now."""
        position = self._data.qpos[self._first :]
        joints = np.concatenate([position[:7], position[8:15]])
        joints[[6, 13]] = normalize_puppet_gripper_position(joints[[6, 13]])
        axes = self._data.xmat[self._box].reshape(3, 3)
        return SceneView(joints=joints, cube=position[16:19].copy(), cube_axes=axes.copy())

    def step(self, targets: Array) -> None:
        """
        Let one control step pass.

        :param targets: joint targets ``(14,)``, as :class:`SceneView` has them
        """
        fingers = unnormalize_puppet_gripper_position(targets[[6, 13]])
        for arm, finger in enumerate(fingers):
            self._data.ctrl[8 * arm : 8 * arm + 6] = targets[7 * arm : 7 * arm + 6]
            self._data.ctrl[8 * arm + 6 : 8 * arm + 8] = finger, -finger
        if self._first:
            self._data.qvel[0] = self._table_speed()
        mujoco.mj_step(self._model, self._data, self._substeps)

    def _table_speed(self) -> float:
        """Return the speed of the table: to and fro while the cube lies on it, else none [m/s]."""
        _, y, z = self._data.qpos[self._first + 16 : self._first + 19]
        if y > self._drift.high or y < self._drift.low:
            self._sense = -1.0 if y > self._drift.high else 1.0
        return self._sense * self._drift.speed if z < OFF_TABLE else 0.0

    def reward(self) -> int:
        """Return gym-aloha's reward: 4 is a cube in the left gripper, clear of the table."""
        touched = self._touched()
        if self._left_pad in touched:
            return 3 if self._table in touched else 4
        if self._right_pad in touched:
            return 1 if self._table in touched else 2
        return 0

    def is_transferred(self) -> bool:
        """Return whether the left gripper has the cube and the right one has let go."""
        return self.reward() == 4 and self._right_pad not in self._touched()

    def _touched(self) -> set[int]:
        pairs = self._data.contact.geom[: self._data.ncon].tolist()
        return {other for pair in pairs if self._red_box in pair for other in pair}
