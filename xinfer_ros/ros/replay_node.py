# SPDX-License-Identifier: Apache-2.0
"""The replay node: plays a recording as the sensors of a robot."""

import importlib
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import UInt32

from xinfer_ros.config import ReplayConfig
from xinfer_ros.episodes.playback import Playback, PlaybackSettings
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros import qos
from xinfer_ros.ros.parameters import as_overrides, declare
from xinfer_ros.ros.replay_topics import changed_types

LISTENING_NS = 20_000_000  # how often to look whether somebody listens


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

    Everything is offered reliable, which reaches best-effort and reliable subscriptions alike, and
    latched where it was latched. A loop starts a new episode, which the topic ``episode``
    announces. ``play`` is called by the control loop, in its thread.

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
        self._config, self._topic_publishers = config, self._make_publishers(recording)
        self._episode_pub = self.create_publisher(UInt32, 'episode', qos.STATE)
        self._episodes = 0
        for warning in recording.warnings:
            self.get_logger().warning(warning)
        settings = PlaybackSettings(
            start_ns=round(config.start_offset_s * 1e9), loop=config.loop, rate=config.rate
        )
        self._playback = Playback(recording, settings, self._send, self._start_over)
        self._playback.send_latched()
        self._is_heard = False

    def play(self, now_ns: int) -> int | None:
        """Publish what is due; return when to be called next, None at the end [ns]."""
        if not self._is_heard:
            self._is_heard = all(map(self._has_heard, self._config.required_topics))
            if not self._is_heard:
                self.get_logger().info(
                    'waiting for a subscription of each of required_topics', once=True
                )
                return now_ns + LISTENING_NS
        return self._playback.play(now_ns)

    def close(self) -> None:
        """Stop reading, tell what became of the messages, and remove the node."""
        self._playback.close()
        self.get_logger().info(self._playback.summary())
        self.destroy_node()

    def _make_publishers(self, recording: Recording) -> dict[str, Any]:
        changed, found = changed_types(recording), {}
        for topic in recording.topics:
            reason = changed.get(topic.name)
            try:
                kind = message_class(topic.type_name)
            except ConfigError as error:
                reason = str(error)
            if reason is not None:
                self.get_logger().warning(f'{topic.name} is not played: {reason}')
                continue
            profile = QoSProfile(depth=10)
            if topic.latched:
                profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
            name = topic.name.lstrip('/')
            found[topic.name] = self.create_publisher(kind, name, profile)
        return found

    def _has_heard(self, name: str) -> bool:
        """Return whether somebody listens to a topic, and has what was latched on it."""
        publisher = self._topic_publishers.get(f'/{name.strip("/")}')
        if publisher is None:
            return True
        return publisher.get_subscription_count() > 0 and publisher.wait_for_all_acked(Duration())

    def _start_over(self) -> None:
        self._episodes += 1
        self._episode_pub.publish(UInt32(data=self._episodes))

    def _send(self, topic: str, data: bytes) -> str | None:
        publisher = self._topic_publishers.get(topic)
        if publisher is None:
            return 'of an unknown or changed type'
        publisher.publish(data)
        return None
