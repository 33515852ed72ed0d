# SPDX-License-Identifier: Apache-2.0
"""What the robot is told to do, and when it starts over."""

from typing import Any

from rclpy.node import Node
from std_msgs.msg import String, UInt32

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.ros import qos


class TaskTopics:
    """
    Subscribes to the task and to the number of the episode.

    A latched message needs a latched subscription, which an ordinary publisher never matches; so
    there are two of each. What comes twice changes nothing.

    :param node: the executor node
    :param config: its settings
    """

    def __init__(self, node: Node, config: ExecutorConfig) -> None:
        self.instruction = config.instruction
        self._episode_number: int | None = None
        self._episode_begins = False
        for profile in (qos.STATE, qos.EVENT):
            node.create_subscription(String, config.task_topic, self._on_task, profile)
            node.create_subscription(UInt32, 'episode', self._on_episode, profile)

    def take_beginning(self) -> bool:
        """Return whether an episode has begun since the last call."""
        begins, self._episode_begins = self._episode_begins, False
        return begins

    def _on_task(self, message: Any) -> None:
        self.instruction = message.data

    def _on_episode(self, message: Any) -> None:
        if message.data != self._episode_number:
            self._episode_number = message.data
            self._episode_begins = True
