# SPDX-License-Identifier: Apache-2.0
"""A node for a command that only listens: spun in a thread of its own."""

import threading

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions


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
