# SPDX-License-Identifier: Apache-2.0
"""What a model asks of a robot and what it promises to answer."""

from dataclasses import dataclass
from typing import Literal

from xinfer_ros.core.stage import Stage

Anchor = Literal['centre', 'lower_right']


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSpec:
    """
    One camera as the model sees it.

    :param name: the name by which robot and model agree on the camera
    :param height: rows of the picture [pixels]
    :param width: columns of the picture [pixels]
    :param anchor: where a picture of other proportions is put; what it leaves free is black
    """

    name: str
    height: int
    width: int
    anchor: Anchor = 'centre'


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContract:
    """
    The contract of a model: every shape that crosses the border between robot and server.

    :param name: name of the model
    :param cameras: the cameras, in the model's order; RGB uint8 ``(height, width, 3)``
    :param joint_names: the joints, in the model's column order; width of state and actions
    :param horizon: rows of a chunk, ``H``
    :param max_commitment_steps: largest commitment ``d`` that is honoured without clamping
    :param max_instruction_bytes: longest instruction in UTF-8 [bytes]
    :param stages: the stages that the model has; those left out take no time
    :param network: what else decides about its times, in words: number of weights, flow steps
    """

    name: str
    cameras: tuple[CameraSpec, ...]
    joint_names: tuple[str, ...]
    horizon: int
    max_commitment_steps: int
    max_instruction_bytes: int = 400
    stages: tuple[Stage, ...] = tuple(Stage)
    network: str = ''

    @property
    def action_dim(self) -> int:
        """Return the width of state and action rows, the number of joints."""
        return len(self.joint_names)
