# SPDX-License-Identifier: Apache-2.0
"""The cube transfer as a plant that obeys rows, and its expert as a source of chunks."""

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.physics.scene_view import GRIPPERS, JOINT_NAMES, SceneView
from xinfer_ros.physics.transfer_expert import TransferExpert
from xinfer_ros.physics.transfer_scene import TransferScene
from xinfer_ros.sim.closed_loop import Tie
from xinfer_ros.sim.closed_loop_pull import pulled

_SWITCHING = np.array([name in GRIPPERS for name in JOINT_NAMES])
#: Ticks for which the cube must have changed hands.
SURE_TICKS = 10


class TransferPlant:
    """
    The scene, one control step a row; done when the cube has surely changed hands.

    :param scene: fresh
    """

    def __init__(self, scene: TransferScene) -> None:
        self._scene = scene
        self._transferred_ticks = 0

    def state(self) -> Rows:
        """Return the measured joints ``(14,)``."""
        return self._scene.view().joints.astype(np.float32)

    def view(self) -> SceneView:
        """Return what the expert is shown now."""
        return self._scene.view()

    def apply(self, command: Rows) -> None:
        """Obey a row ``(14,)`` for one control step."""
        self._scene.step(command.astype(np.float64))
        held = self._scene.is_transferred()
        self._transferred_ticks = self._transferred_ticks + 1 if held else 0

    def is_done(self) -> bool:
        """Return whether the cube has been in the left gripper alone for a while."""
        return self._transferred_ticks >= SURE_TICKS


class ExpertSource:
    """
    Chunks of the expert, tied to the leftover as real-time chunking does; grippers never are.

    :param expert: plans from what it is shown and from what was promised
    :param horizon: rows of a chunk, ``H``
    """

    def __init__(self, expert: TransferExpert, horizon: int) -> None:
        self._expert, self._horizon = expert, horizon

    def chunk(self, view: SceneView, tie: Tie) -> Rows:
        """Return rows ``(H, 14)``."""
        promised = tie.leftover[: tie.frozen_steps].astype(np.float64)
        plan = self._expert.plan(view, self._horizon, promised).astype(np.float32)
        return np.where(_SWITCHING, plan, pulled(plan, tie))
