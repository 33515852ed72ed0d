# SPDX-License-Identifier: Apache-2.0
"""One request of a robot, as it travels from the executor to the server."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraFrame:
    """
    One picture as a camera delivered it.

    :param name: camera name of the contract
    :param compressed: True if ``data`` is a whole JPEG or PNG file
    :param encoding: raw: encoding of ``sensor_msgs/Image``; compressed: its format text
    :param height: rows [pixels]
    :param width: columns [pixels]
    :param step: length of one raw row with its padding [bytes]
    :param is_bigendian: byte order of raw samples wider than one byte
    :param data: the picture [bytes]
    """

    name: str
    compressed: bool
    encoding: str
    height: int
    width: int
    step: int
    is_bigendian: bool
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    Everything that the server needs to compute the next chunk; fields as in msg/Observation.msg.

    :param minimum_period_ns: ``TE``, least time from one request of the robot to the next [ns]
    :param state: ``(num_joints,)`` float32 in ``joint_names`` order
    :param leftover: ``(leftover_steps, num_joints)`` float32 in ``joint_names`` order
    :param ticks: control ticks of the robot, ``starved_ticks`` among them; 0: not told
    :param answered_request_id: latest request whose answer has come, 0: none
    :param round_trip_ns: from sending that one to its answer, by the robot's own clock [ns]
    """

    session: int
    episode: int
    request_id: int
    executed_steps: int
    instruction: str
    joint_names: tuple[str, ...]
    state: npt.NDArray[np.float32]
    images: tuple[CameraFrame, ...]
    budget_ns: int
    minimum_period_ns: int
    commitment_steps: int
    keyframe_spacing_ns: int
    leftover: npt.NDArray[np.float32]
    ticks: int = 0
    starved_ticks: int = 0
    answered_request_id: int = 0
    round_trip_ns: int = 0
