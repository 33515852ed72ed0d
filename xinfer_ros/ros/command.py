# SPDX-License-Identifier: Apache-2.0
"""Rows as commands, in the message type that the robot's controller takes."""

from array import array
from typing import Any

import numpy as np
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.action_queue import QueuedRow
from xinfer_ros.ros import qos


class CommandPublisher:
    """
    Publishes one command a tick; while the robot is starved the last one is repeated.

    Before the first row nothing is published: a robot at rest stays at rest.

    :param node: the executor node
    :param config: its settings
    """

    def __init__(self, node: Any, config: ExecutorConfig) -> None:
        self._as_trajectory = config.command_types[0] == 'joint_trajectory'
        self._spacing_ns = round(config.keyframe_spacing_s * 1e9)
        kind = JointTrajectory if self._as_trajectory else Float64MultiArray
        self._publisher = node.create_publisher(kind, config.command_topics[0], qos.COMMAND)
        self._held: Rows | None = None
        self.joint_names: tuple[str, ...] = ()

    def forget(self) -> None:
        """Hold nothing any more: what was commanded belongs to an episode that is over."""
        self._held = None

    def publish(self, row: QueuedRow | None) -> None:
        """Publish a row, or hold the last one if there is none."""
        if row is not None:
            self._held = row.values
        if self._held is not None:
            positions = array('d', np.asarray(self._held, np.float64).tobytes())
            self._publisher.publish(self._message(positions))

    def _message(self, positions: 'array[float]') -> Any:
        if not self._as_trajectory:
            return Float64MultiArray(data=positions)
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.sec = self._spacing_ns // 1_000_000_000
        point.time_from_start.nanosec = self._spacing_ns % 1_000_000_000
        return JointTrajectory(joint_names=list(self.joint_names), points=[point])
