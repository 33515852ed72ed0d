# SPDX-License-Identifier: Apache-2.0
"""Says once a second how the fleet is served."""

import queue
import time
from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.repeats import RepeatLimit
from xinfer_ros.core.thread_name import start_thread
from xinfer_ros.engine.robots import Robot
from xinfer_ros.msg import FleetStatus
from xinfer_ros.observe.fleet_view import FleetView
from xinfer_ros.ros.diagnostics import server_diagnostics
from xinfer_ros.ros.fleet_messages import from_fleet_status
from xinfer_ros.ros.qos import Mismatch

REST_S = 0.001


class ServerReporter:
    """
    Publishes the fleet's status and diagnostics, in a thread that lets requests go first.

    :param node: the server node
    :param view: of its fleet
    :param clock: the server's monotonic clock
    """

    def __init__(self, node: Any, view: FleetView, clock: Clock) -> None:
        self._node, self._view, self._clock = node, view, clock
        self._repeats = RepeatLimit()
        self._statuses = node.create_publisher(FleetStatus, 'fleet_status', 10)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._asked = queue.SimpleQueue[Sequence[Mismatch] | None]()
        self._thread = start_thread('report', self._work)

    def publish(self, gone: Sequence[Robot], mismatched: Sequence[Mismatch]) -> None:
        """
        Publish the status of this moment; returns at once.

        :param gone: robots whose lease was over since the last time
        :param mismatched: publishers that can never reach the server
        """
        if gone:
            names = ', '.join(robot.registration.robot_id for robot in gone)
            self._node.get_logger().warning(f'silent or gone, and removed: {names}')
        if self._asked.empty():  # else the last one is not out yet
            self._asked.put(mismatched)

    def _work(self) -> None:
        while (mismatched := self._asked.get()) is not None:
            self._publish(mismatched)

    def _publish(self, mismatched: Sequence[Mismatch]) -> None:
        whys = {
            m.topic.rpartition('/')[0]: f'{m.peer} publishes {m.topic} with an incompatible '
            f'quality of service: {m.why}'
            for m in mismatched
        }
        self._view.mismatched(whys)
        status = self._view.status(self._clock.now_ns(), rest=_rest)
        stamp = self._node.get_clock().now().to_msg()
        self._statuses.publish(from_fleet_status(status, stamp))
        self._diagnostics.publish(server_diagnostics(self._node, status, mismatched))

    def warn(self, kind: str, text: str) -> None:
        """Log a warning, at most once a second of each kind."""
        words = self._repeats.words(kind, text, self._clock.now_ns())
        if words is not None:
            self._node.get_logger().warning(words)

    def close(self) -> None:
        """End the thread and remove the topics."""
        self._asked.put(None)
        self._thread.join()
        self._node.destroy_publisher(self._statuses)
        self._node.destroy_publisher(self._diagnostics)


def _rest() -> None:
    """Let threads go first that serve: a robot's figures take a good part of a millisecond."""
    time.sleep(REST_S)
