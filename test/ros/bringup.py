# SPDX-License-Identifier: Apache-2.0
"""The bringup of a small robot: six joints and a camera, published by the test's own node."""

from array import array
from typing import Any

import cv2
import numpy as np
from sensor_msgs.msg import CompressedImage, Image, JointState

from xinfer_ros.core.contract import CameraSpec, ModelContract

from .graph import Graph, NodeProcess

JOINTS = ('pan', 'lift', 'elbow', 'roll', 'pitch', 'gripper')
CAMERA = 'front'
CONTRACT = ModelContract(
    name='scripted',
    cameras=(CameraSpec(name=CAMERA, height=24, width=32),),
    joint_names=JOINTS,
    horizon=16,
    max_commitment_steps=8,
)
JOINTS_S, CAMERA_S = 0.01, 0.05


class Bringup:
    """
    Publishes joint states at 100 Hz and pictures at 20 Hz while the test's node is spun.

    :param graph: where it lives
    :param robot: namespace of the robot
    :param raw: whether pictures are sensor_msgs/Image
    """

    def __init__(self, graph: Graph, robot: str = '/r0', *, raw: bool = False) -> None:
        self._graph, self._robot, self._raw = graph, robot, raw
        node = graph.node
        self.state = np.zeros(len(JOINTS))
        self.effort: list[float] = []
        self.drivers = [JOINTS]  # each publishes its joints in a message of its own
        self.stamp_s = 0
        self.rules: list[str] = []  # further remappings of the executor's process
        self.joints_run = self.camera_runs = True
        kind, suffix = (Image, '') if raw else (CompressedImage, '/compressed')
        self._joints = node.create_publisher(JointState, f'{robot}/joint_states', 10)
        self._camera = node.create_publisher(kind, f'{robot}/{CAMERA}/image_raw{suffix}', 1)
        node.create_timer(JOINTS_S, self._publish_joints)
        node.create_timer(CAMERA_S, self._publish_picture)

    def executor(self, *parameters: str) -> NodeProcess:
        """Start the robot's executor with some parameters, ``NAME:=VALUE`` each."""
        given = [f'camera_names:=[{CAMERA}]', f'camera_transport:={self._transport}', *parameters]
        pairs = [part for parameter in given for part in ('-p', parameter)]
        rules = [part for rule in (f'__ns:={self._robot}', *self.rules) for part in ('-r', rule)]
        return self._graph.run('executor_main', '--ros-args', *rules, *pairs)

    @property
    def _transport(self) -> str:
        return 'raw' if self._raw else 'compressed'

    def _publish_joints(self) -> None:
        for names in self.drivers if self.joints_run else ():
            message = JointState(name=list(names))
            message.header.stamp.sec = self.stamp_s
            columns = [JOINTS.index(name) for name in names]
            message.position = array('d', self.state[columns])
            if self.effort:
                message.effort = array('d', np.array(self.effort)[columns])
            self._joints.publish(message)

    def _publish_picture(self) -> None:
        if self.camera_runs:
            self._camera.publish(self._picture())

    def _picture(self) -> Any:
        picture = np.full((24, 32, 3), 90, np.uint8)
        if not self._raw:
            data = array('B', cv2.imencode('.jpg', picture)[1].tobytes())
            return CompressedImage(format='jpeg', data=data)
        data = array('B', picture.tobytes())
        return Image(encoding='rgb8', height=24, width=32, step=96, data=data)
