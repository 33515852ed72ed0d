# SPDX-License-Identifier: Apache-2.0
"""An executor in the process of the test, whose control thread a test can stall."""

import threading
from contextlib import ExitStack

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.ros.executor_host import ExecutorHost
from xinfer_ros.ros.stop import Stop

from .graph import Graph

LOOK_NS = 5_000_000


class HostedExecutor:
    """
    Runs ``/r0/executor`` with a thread that spins it.

    :param graph: in whose domain it lives
    :param config: its settings
    """

    def __init__(self, graph: Graph, config: ExecutorConfig) -> None:
        self._domain, self._config = int(graph.env['ROS_DOMAIN_ID']), config
        self._stop, self._stack = Stop(), ExitStack()
        self._may_tick = threading.Event()
        self._may_tick.set()

    def _gate(self, now_ns: int) -> int:
        """Share the control thread, and keep it as long as the test wants."""
        self._may_tick.wait()
        return now_ns + LOOK_NS

    def stall(self) -> None:
        """Let the control thread get stuck."""
        self._may_tick.clear()

    def go_on(self) -> None:
        """Let it go on."""
        self._may_tick.set()

    @property
    def code(self) -> int:
        """Return the exit code that the process would have."""
        return self._stop.code

    def _spin(self, executor: SingleThreadedExecutor) -> None:
        while not self._stop.is_requested:
            executor.spin_once(timeout_sec=0.05)

    def __enter__(self) -> 'HostedExecutor':
        """Start it."""
        rclpy.init(domain_id=self._domain, signal_handler_options=SignalHandlerOptions.NO)
        self._stack.callback(rclpy.try_shutdown)
        host = ExecutorHost(self._stop)
        node = host.node('/r0', self._config)
        executor = SingleThreadedExecutor()
        self._stack.enter_context(host.running([self._config], [self._gate]))
        executor.add_node(node)
        spinner = threading.Thread(target=self._spin, args=(executor,), name='spinner')
        spinner.start()
        self._stack.callback(spinner.join)
        self._stack.callback(self._stop.request)
        return self

    def __exit__(self, *error: object) -> None:
        """End it, whatever it was doing."""
        self.go_on()
        self._stack.close()
