# SPDX-License-Identifier: Apache-2.0
"""The server's topics of one robot."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.serialization import deserialize_message

from xinfer_ros.core.chunk import Answer
from xinfer_ros.engine.answer_router import Outlet
from xinfer_ros.engine.robots import Robot
from xinfer_ros.msg import ActionChunk, Budget, Observation
from xinfer_ros.ros import qos
from xinfer_ros.ros.chunk_wire import answer_bytes
from xinfer_ros.ros.convert import received
from xinfer_ros.ros.observation_wire import ObservationReader, Received


class RobotPort:
    """
    Two subscriptions and a publisher in the robot's namespace, for as long as it is registered.

    :param node: the server node
    :param robot: whose topics they are
    :param observe: takes what reads an observation; ValueError if it can't be read
    :param set_budget: takes budgets
    """

    def __init__(
        self,
        node: Any,
        robot: Robot,
        observe: Callable[[Robot, Callable[[], Received]], None],
        set_budget: Callable[[Robot, Any], None],
    ) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._is_suspected = False
        space = robot.registration.namespace
        self._publisher = node.create_publisher(ActionChunk, f'{space}/action_chunk', qos.CHUNK)
        self._topic = f'{space}/observation'
        reader = ObservationReader(read_by_rclpy)
        self._subscriptions = (
            node.create_subscription(
                Observation,
                self._topic,
                lambda data: observe(robot, lambda: reader.read(data)),
                qos.OBSERVATION,
                raw=True,
                event_callbacks=SubscriptionEventCallbacks(incompatible_qos=self._suspect),
            ),
            node.create_subscription(
                Budget, f'{space}/budget', lambda m: set_budget(robot, m), qos.BUDGET
            ),
        )

    def publish(self, answer: Answer) -> None:
        """Publish an answer; from any thread, and without effect once the port is closed."""
        message = answer_bytes(answer)
        with self._lock:
            if self._publisher is not None:
                self._publisher.publish(message)

    def mismatches(self) -> list[qos.Mismatch]:
        """Return the publishers of observations that can never reach the server."""
        if not self._is_suspected:  # asking costs as much as several requests
            return []
        found = qos.mismatches(self._node, self._topic, qos.OBSERVATION)
        self._is_suspected = bool(found)
        return found

    def _suspect(self, event: Any) -> None:
        """Take in that a publisher does not match."""
        self._is_suspected = True

    def close(self) -> None:
        """Remove the topics."""
        with self._lock:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)


def read_by_rclpy(data: bytes) -> Received:
    """
    Return the observation in a message of any layout.

    :raises ValueError: if it can't be read
    """
    try:
        message = deserialize_message(data, Observation)
    except RuntimeError as error:  # of the middleware; it would end the node
        raise ValueError(f'{len(data)} bytes are no observation') from error
    return received(message)


def mismatches(outlets: Iterable[Outlet]) -> list[qos.Mismatch]:
    """Return what can never reach the server, of those robots that have topics."""
    ports = [outlet for outlet in outlets if isinstance(outlet, RobotPort)]
    return [mismatch for port in ports for mismatch in port.mismatches()]
