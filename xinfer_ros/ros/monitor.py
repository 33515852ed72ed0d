# SPDX-License-Identifier: Apache-2.0
"""Listens to a running fleet: the newest report of each robot and the server's state."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.msg import ExecutorState, ServerState
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import to_report
from xinfer_ros.ros.node_list import SERVER_NAMESPACE
from xinfer_ros.ros.spun_node import SpunNode


class Monitor:
    """
    A node in a thread of its own.

    :param robots: ids of the robots; their namespaces are the same
    """

    def __init__(self, robots: Sequence[str]) -> None:
        self._spun = SpunNode('xinfer_monitor')
        self._lock = threading.Lock()
        self._reports: dict[str, RobotReport] = {}
        self._server: Any = None
        for robot in robots:
            topic = f'/{robot}/executor_state'
            self._spun.listen(ExecutorState, topic, self._on_report, qos.CHUNK)
        state_topic = f'{SERVER_NAMESPACE}/server_state'
        self._spun.listen(ServerState, state_topic, self._on_server, qos.STATE)
        self._spun.run()

    def _on_report(self, message: Any) -> None:
        report = to_report(message)
        with self._lock:
            self._reports[message.robot_id] = report

    def _on_server(self, message: Any) -> None:
        with self._lock:
            self._server = message

    def reports(self) -> dict[str, RobotReport]:
        """Return the newest report of each robot that has been heard."""
        with self._lock:
            return dict(self._reports)

    @property
    def server_is_there(self) -> bool:
        """Return whether a server has said anything."""
        with self._lock:
            return self._server is not None

    @property
    def server_is_ready(self) -> bool:
        """Return whether the server's last word was READY."""
        with self._lock:
            return self._server is not None and self._server.state == ServerState.READY

    @property
    def epoch(self) -> int:
        """Return the epoch that the server last announced, 0 before it."""
        with self._lock:
            return int(self._server.epoch) if self._server is not None else 0

    @property
    def engine_pid(self) -> int:
        """Return the process id of the engine, 0 if it is not known."""
        with self._lock:
            return int(self._server.engine_pid) if self._server is not None else 0

    def wait_for_news(self, seconds: float) -> None:
        """Let time pass while reports come in."""
        time.sleep(seconds)

    def close(self) -> None:
        """Leave the fleet."""
        self._spun.close()
