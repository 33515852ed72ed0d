# SPDX-License-Identifier: Apache-2.0
"""What a managed node creates when it is configured, removed together when it is cleaned up."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from xinfer_ros.ros.parameters import steady_clock


class Entities:
    """
    Makes publishers, subscriptions, clients and timers of a node, and remembers them.

    :param node: whose they are
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self._removals: list[Callable[[], Any]] = []

    def now(self) -> Any:
        """Return the time of the node as a message."""
        return self.node.get_clock().now().to_msg()

    def create_publisher(self, kind: Any, topic: str, profile: QoSProfile | int) -> Any:
        """Return a publisher."""
        publisher = self.node.create_publisher(kind, topic, profile)
        self._removals.append(lambda: self.node.destroy_publisher(publisher))
        return publisher

    def create_subscription(
        self, kind: Any, topic: str, callback: Callable[[Any], None], profile: QoSProfile
    ) -> Any:
        """Return a subscription."""
        subscription = self.node.create_subscription(kind, topic, callback, profile)
        self._removals.append(lambda: self.node.destroy_subscription(subscription))
        return subscription

    def create_client(self, kind: Any, name: str) -> Any:
        """Return a client of a service."""
        client = self.node.create_client(kind, name)
        self._removals.append(lambda: self.node.destroy_client(client))
        return client

    def create_timer(self, seconds: float, callback: Callable[[], None]) -> Any:
        """Return a timer of the steady clock."""
        timer = self.node.create_timer(seconds, callback, clock=steady_clock())
        self._removals.append(lambda: self.node.destroy_timer(timer))
        return timer

    def at_close(self, removal: Callable[[], Any]) -> None:
        """Let something else be removed with them."""
        self._removals.append(removal)

    def close(self) -> None:
        """Remove everything, the newest first."""
        while self._removals:
            self._removals.pop()()
