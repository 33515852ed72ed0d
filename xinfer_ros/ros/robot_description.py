# SPDX-License-Identifier: Apache-2.0
"""The URDF of a robot, from a file or from its latched topic."""

from pathlib import Path
from typing import Any

from std_msgs.msg import String

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.urdf import UrdfLimits, urdf_limits
from xinfer_ros.ros import qos
from xinfer_ros.ros.entities import Entities


class RobotDescription:
    """
    Knows the limits of the joints, as soon as somebody has said them.

    :param entities: makes the subscription
    :param config: of the executor
    :raises ConfigError: if the file can't be read or is no URDF
    """

    def __init__(self, entities: Entities, config: ExecutorConfig) -> None:
        self.limits: UrdfLimits | None = None
        self._topic = config.robot_description_topic
        self._text = ''
        if config.urdf_file:
            try:
                self.limits = urdf_limits(Path(config.urdf_file).expanduser().read_text())
            except (OSError, UnicodeDecodeError) as error:
                path = config.urdf_file
                raise ConfigError(f'urdf_file {path} cannot be read: {error}') from None
        elif self._topic:
            entities.create_subscription(String, self._topic, self._on_text, qos.STATE)

    def waits(self) -> str:
        """
        Return what is waited for, nothing if the robot may move.

        :raises ConfigError: if what came is no URDF
        """
        if self._text:
            self.limits, self._text = urdf_limits(self._text), ''
        if self._topic and self.limits is None:
            return f'waiting for the URDF on {self._topic}'
        return ''

    def _on_text(self, message: Any) -> None:
        if self.limits is None:
            self._text = message.data
