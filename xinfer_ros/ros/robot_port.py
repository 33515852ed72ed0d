# SPDX-License-Identifier: Apache-2.0
"""The server's topics of one robot."""

import threading
from collections.abc import Callable
from typing import Any

from xinfer_ros.engine.robots import Robot
from xinfer_ros.msg import ActionChunk, Budget, Observation
from xinfer_ros.ros import qos


class RobotPort:
    """
    Two subscriptions and a publisher in the robot's namespace, for as long as it is registered.

    :param node: the server node
    :param robot: whose topics they are
    :param observe: takes observations
    :param set_budget: takes budgets
    """

    def __init__(
        self,
        node: Any,
        robot: Robot,
        observe: Callable[[Robot, Any], None],
        set_budget: Callable[[Robot, Any], None],
    ) -> None:
        self._node = node
        self._lock = threading.Lock()
        space = robot.registration.namespace
        self._publisher = node.create_publisher(ActionChunk, f'{space}/action_chunk', qos.CHUNK)
        self._topic = f'{space}/observation'
        self._subscriptions = (
            node.create_subscription(
                Observation, self._topic, lambda m: observe(robot, m), qos.OBSERVATION
            ),
            node.create_subscription(
                Budget, f'{space}/budget', lambda m: set_budget(robot, m), qos.BUDGET
            ),
        )

    def publish(self, message: Any) -> None:
        """Publish an answer; from any thread, and without effect once the port is closed."""
        with self._lock:
            if self._publisher is not None:
                self._publisher.publish(message)

    def mismatches(self) -> list[qos.Mismatch]:
        """Return the publishers of observations that can never reach the server."""
        return qos.mismatches(self._node, self._topic, qos.OBSERVATION)

    def close(self) -> None:
        """Remove the topics."""
        with self._lock:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
