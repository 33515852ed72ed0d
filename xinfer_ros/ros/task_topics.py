# SPDX-License-Identifier: Apache-2.0
"""What the robot is told to do, and when it starts over."""

from typing import Any

from std_msgs.msg import String, UInt32

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.ros import qos
from xinfer_ros.ros.entities import Entities


class TaskTopics:
    """
    Subscribes to the task and to the number of the episode.

    A latched message needs a latched subscription, which an ordinary publisher never matches; so
    there are two of each. What comes twice changes nothing.

    :param entities: makes the subscriptions
    :param config: of the executor
    """

    def __init__(self, entities: Entities, config: ExecutorConfig) -> None:
        self.instruction = config.instruction
        self._episode_number: int | None = None
        self._episode_begins = False
        self._task_changes = False
        for profile in (qos.STATE, qos.EVENT):
            entities.create_subscription(String, config.task_topic, self._on_task, profile)
            entities.create_subscription(UInt32, 'episode', self._on_episode, profile)

    def take_beginning(self) -> bool:
        """Return whether an episode has begun since the last call."""
        begins, self._episode_begins = self._episode_begins, False
        return begins

    def take_change(self) -> bool:
        """Return whether the task has become another one since the last call."""
        changes, self._task_changes = self._task_changes, False
        return changes

    def _on_task(self, message: Any) -> None:
        if message.data != self.instruction:
            self.instruction = message.data
            self._task_changes = True

    def _on_episode(self, message: Any) -> None:
        if message.data != self._episode_number:
            self._episode_number = message.data
            self._episode_begins = True
