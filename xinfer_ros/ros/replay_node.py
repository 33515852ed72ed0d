# SPDX-License-Identifier: Apache-2.0
"""The replay node: plays a recording as the sensors of a robot."""

import importlib
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import UInt32

from xinfer_ros.config import ReplayConfig
from xinfer_ros.episodes.bag import Recording
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros import qos
from xinfer_ros.ros.parameters import as_overrides, declare


def message_class(type_name: str) -> Any:
    """
    Return the class of a message type.

    :param type_name: such as ``sensor_msgs/msg/JointState``
    :raises ConfigError: if its package is not installed
    """
    try:
        package, _, name = type_name.split('/')
        return getattr(importlib.import_module(f'{package}.msg'), name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f'message type {type_name} is not installed') from None


class ReplayNode(Node):
    """
    Publishes each message at its recorded time, under its recorded name in the node's namespace.

    A loop starts a new episode, which the topic ``episode`` announces. ``play`` is called by the
    control loop, in its thread.

    :param namespace: namespace of the robot that is played
    :param config: settings
    :param recording: what to play
    """

    def __init__(
        self, namespace: str, config: ReplayConfig, recording: Recording, name: str = 'replay'
    ) -> None:
        overrides = as_overrides(config)
        super().__init__(name, namespace=namespace, parameter_overrides=overrides)
        declare(self, config)
        self._config, self._messages = config, recording.messages
        self._topic_publishers: dict[str, Any] = {}
        for topic in recording.topics:
            try:
                kind = message_class(topic.type_name)
            except ConfigError as error:
                self.get_logger().warning(f'{topic.name} is not played: {error}')
                continue
            profile = QoSProfile(depth=10)
            if topic.latched:
                profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
            self._topic_publishers[topic.name] = self.create_publisher(
                kind, topic.name.lstrip('/'), profile
            )
        self._latched = {topic.name for topic in recording.topics if topic.latched}
        self._episode_pub = self.create_publisher(UInt32, 'episode', qos.STATE)
        offset_ns = round(config.start_offset_s * 1e9) % max(recording.duration_ns, 1)
        self._next = 0
        while self._messages[self._next].offset_ns < offset_ns:
            if self._messages[self._next].topic in self._latched:
                self._send(self._next)  # known before the first picture, as in the recording
            self._next += 1
        self._origin_ns: int | None = None
        self._first_offset_ns = offset_ns
        self._episodes = 0
        self.messages_sent = 0

    def play(self, now_ns: int) -> int | None:
        """Publish what is due; return when the next message is due, None at the end [ns]."""
        if self._origin_ns is None:
            self._origin_ns = now_ns - self._scaled(self._first_offset_ns)
        while self._due_ns() <= now_ns:
            self._send(self._next)
            self.messages_sent += 1
            self._next += 1
            if self._next == len(self._messages):
                if not self._config.loop:
                    return None
                self._start_over()
        return self._due_ns()

    def _start_over(self) -> None:
        assert self._origin_ns is not None
        spacing_ns = self._messages[-1].offset_ns // max(len(self._messages) // 4, 1)
        self._origin_ns += self._scaled(self._messages[-1].offset_ns + spacing_ns)
        self._next = 0
        self._episodes += 1
        self._episode_pub.publish(UInt32(data=self._episodes))

    def _due_ns(self) -> int:
        assert self._origin_ns is not None
        return self._origin_ns + self._scaled(self._messages[self._next].offset_ns)

    def _scaled(self, offset_ns: int) -> int:
        return round(offset_ns / self._config.rate)

    def _send(self, index: int) -> None:
        message = self._messages[index]
        publisher = self._topic_publishers.get(message.topic)
        if publisher is not None:
            publisher.publish(message.data)
