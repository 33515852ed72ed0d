# SPDX-License-Identifier: Apache-2.0
"""A node for a command that only listens: spun in a thread of its own."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

log = logging.getLogger(__name__)


class SpunNode:
    """
    Starts rclpy with a node of its own, which the process has for itself; ``run`` spins it.

    :param name: of the node
    """

    def __init__(self, name: str) -> None:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node(name, start_parameter_services=False)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._not_understood: dict[str, str] = {}

    def listen(
        self, kind: type[Any], topic: str, take: Callable[[Any], None], profile: Any
    ) -> None:
        """
        Hand on the messages of a topic; those that can't be understood are left out.

        :param take: may raise ``ValueError``
        """

        def taken(message: Any) -> None:
            try:
                take(message)
            except ValueError as error:
                if topic not in self._not_understood:
                    log.warning('a message of %s is not understood: %s', topic, error)
                self._not_understood[topic] = str(error)

        self.node.create_subscription(kind, topic, taken, profile)

    def not_understood(self, topic: str) -> str:
        """Return what was wrong with the last message that was left out, empty if none was."""
        return self._not_understood.get(topic, '')

    def run(self) -> None:
        """Begin to take in messages."""
        self._thread.start()

    def _spin(self) -> None:
        executor = SingleThreadedExecutor()
        executor.add_node(self.node)
        while not self._closing.is_set():
            executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        """Leave the graph."""
        self._closing.set()
        self._thread.join()
        self.node.destroy_node()
        rclpy.try_shutdown()
