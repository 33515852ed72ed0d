# SPDX-License-Identifier: Apache-2.0
"""Publishes rows as commands, each joint on the topic of its controller."""

import threading
from typing import Any

from rclpy.duration import Duration

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Rows
from xinfer_ros.robot.command_routes import command_routes
from xinfer_ros.robot.hold import SafeOutput
from xinfer_ros.ros import qos
from xinfer_ros.ros.command_messages import MESSAGE_TYPES, command_messages
from xinfer_ros.ros.entities import Entities

LAST_WORD_S = 0.05  # the most it waits for the lock, which a stalled control thread may hold


class CommandPublisher:
    """
    The command topics of a robot; publishers exist from the start, so that they are matched early.

    :param entities: makes the publishers
    :param config: of the executor
    """

    def __init__(self, entities: Entities, config: ExecutorConfig) -> None:
        self._config, self._now = config, entities.now
        self._spacing_ns = round(config.keyframe_spacing_s * 1e9)
        self._lock = threading.Lock()
        self._is_closed = True
        self._routes: tuple[Any, ...] = ()
        kinds = config.command_types * len(config.command_topics)
        self._publishers = {
            topic: entities.create_publisher(MESSAGE_TYPES[kind], topic, qos.COMMAND)
            for topic, kind in zip(config.command_topics, kinds, strict=False)
        }

    def bind(self, joint_names: tuple[str, ...]) -> None:
        """
        Route the joints to their topics.

        :raises ConfigError: if a joint is on no topic
        """
        interface = self._config.command_interface
        self._routes = tuple(
            (
                self._publishers[route.topic],
                command_messages(route.kind, route.joint_names, interface, self._now),
                route.columns,
            )
            for route in command_routes(self._config, joint_names)
        )

    def open(self) -> None:
        """Let commands pass from now on."""
        self._is_closed = False

    def publish(self, values: Rows | None) -> None:
        """Publish a command, ``(num_joints,)``; None and anything after ``close``: nothing."""
        if values is None:
            return
        with self._lock:
            for publisher, messages, columns in self._routes:
                if not self._is_closed:  # the last word may not have waited for the lock
                    publisher.publish(messages.of(values[columns], self._spacing_ns))

    def say(self, output: SafeOutput | None, *, last: bool) -> None:
        """
        Publish a safe output; from any thread, and however the control thread fares.

        :param last: let nothing pass after it
        """
        held = self._lock.acquire(timeout=LAST_WORD_S)
        try:
            self._is_closed = self._is_closed or last
            if output is not None:
                self._publish_output(output)
        finally:
            if held:
                self._lock.release()

    def _publish_output(self, output: SafeOutput) -> None:
        for publisher, messages, columns in self._routes:
            values = output.goal if messages.takes_time else output.values
            publisher.publish(messages.of(values[columns], output.duration_ns))

    def flush(self, seconds: float) -> None:
        """Wait until controllers have acknowledged what was published, at most so long [s]."""
        for publisher, _, _ in self._routes:
            publisher.wait_for_all_acked(Duration(seconds=seconds / len(self._routes)))
