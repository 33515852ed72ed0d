# SPDX-License-Identifier: Apache-2.0
"""Runs executor nodes in a process: their control thread, who looks after it, and their end."""

import contextlib
import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.control_loop import ControlLoop, Task
from xinfer_ros.robot.watchdog import StallGuard, stall_limit_ns
from xinfer_ros.ros.executor_node import ExecutorNode
from xinfer_ros.ros.stop import Stop

SWITCH_S = 0.0005  # a tick waits no longer for another thread's Python code
FLUSH_S = 0.05  # for the safe output of one robot to be acknowledged

log = logging.getLogger(__name__)


class ExecutorHost:
    """
    The executors of one process, all of which tick in one thread.

    :param stop: the wish to end; the safe outputs come first, whoever wishes it
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._loop: ControlLoop | None = None
        self._nodes: list[ExecutorNode] = []

    def node(self, namespace: str, config: ExecutorConfig, name: str = 'executor') -> ExecutorNode:
        """Return a new executor node of this process."""
        node = ExecutorNode(namespace, config, name, self._time_moved)
        self._nodes.append(node)
        return node

    def _time_moved(self) -> None:
        if self._loop is not None:
            self._loop.wake()

    @contextlib.contextmanager
    def running(
        self, configs: Sequence[ExecutorConfig], others: Sequence[Task] = ()
    ) -> Iterator[None]:
        """
        Let the nodes live; at the end they are gone.

        :param configs: settings of the nodes, in their order
        :param others: further tasks of the control thread
        :raises ConfigError: if a node can't be configured with its settings, or finds at work
            that they do not fit the robot
        """
        for node, config in zip(self._nodes, configs, strict=True):
            if config.autostart:
                self._start(node)
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        clock = MonotonicClock()
        tasks = [*others, *(node.control_tick for node in self._nodes)]
        self._loop = loop = ControlLoop(clock, tasks, self._failed)
        spacing_ns = max(round(config.keyframe_spacing_s * 1e9) for config in configs)
        guard = StallGuard(clock, loop.lateness_ns, stall_limit_ns(spacing_ns), self._stalled)
        self._stop.at_request(self._say_last)
        gc.collect()
        gc.freeze()  # what is there now stays: no tick waits while it is looked through
        loop.start()
        guard.start()
        try:
            yield
        finally:
            self._stop.request()
            guard.close()
            self._close(loop)
            sys.setswitchinterval(usual_s)
            gc.unfreeze()
        if isinstance(loop.failure, ConfigError):
            raise loop.failure

    def _start(self, node: ExecutorNode) -> None:
        from rclpy.lifecycle import TransitionCallbackReturn

        for transition in (node.trigger_configure, node.trigger_activate):
            if transition() != TransitionCallbackReturn.SUCCESS:
                if node.failure is not None:
                    raise node.failure
                self._stop.request(1)
                return

    def _failed(self) -> None:
        self._stop.request(1)

    def _stalled(self, late_ns: int) -> None:
        for node in self._nodes:
            node.stalled(late_ns)

    def _say_last(self) -> None:
        """Publish the safe output of every robot, then see to it that it has left."""
        for node in self._nodes:
            node.stop()
        for node in self._nodes:
            node.flush(FLUSH_S)

    def _close(self, loop: ControlLoop) -> None:
        """Remove the nodes; a control thread that stalls for good can't be ended otherwise."""
        if not loop.close():
            log.critical('the control thread does not end; the process does')
            os._exit(max(self._stop.code, 1))
        for node in self._nodes:
            node.on_cleanup(None)
            node.destroy_node()
