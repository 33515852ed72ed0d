# SPDX-License-Identifier: Apache-2.0
"""Carries work from any thread into rclpy's."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node


class Relay:
    """
    Does what other threads post, in the thread that spins a node, in order.

    :param node: the node
    """

    def __init__(self, node: Node) -> None:
        self._work: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._condition: Any = node.create_guard_condition(self._do)

    def post(self, work: Callable[[], Any]) -> None:
        """Let something be done, unless it is closed; from any thread, without waiting for it."""
        with self._lock:
            if self._condition is not None:
                self._work.put(work)
                self._condition.trigger()

    def close(self) -> None:
        """Take nothing any more: nobody spins the node."""
        with self._lock:
            self._condition = None

    def _do(self) -> None:
        while not self._work.empty():
            self._work.get()()
