# SPDX-License-Identifier: Apache-2.0
"""The executor node: the robot's side of the fleet, a managed node around its body."""

import secrets
import threading
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.executor_body import ExecutorBody
from xinfer_ros.ros.parameters import as_overrides, declare

IDLE_NS = 100_000_000
CLEANUP_S = 1.0  # how long a clean-up waits for the control thread


class ExecutorNode(LifecycleNode):
    """
    Commands the robot while active.

    Configure makes the topics, activate begins an episode, deactivate publishes the safe output
    and commands nothing any more, cleanup removes the topics. ``control_tick`` is called by the
    control loop, in its thread.

    :param namespace: the robot's namespace
    :param config: settings
    :param name: node name
    :param time_moved: called in rclpy's thread when simulated time has moved
    """

    def __init__(
        self,
        namespace: str,
        config: ExecutorConfig,
        name: str = 'executor',
        time_moved: Callable[[], None] = lambda: None,
    ) -> None:
        overrides = as_overrides(config)
        super().__init__(name, namespace=namespace, parameter_overrides=overrides)
        declare(self, config)
        self._config, self._steady, self._time_moved = config, MonotonicClock(), time_moved
        self._robot_id = config.robot_id or namespace.strip('/').replace('/', '_')
        self._instance = secrets.randbits(63) | 1
        self._ticking = threading.Lock()
        self._body: ExecutorBody | None = None
        self.failure: ConfigError | None = None

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Make the topics; what is wrong with the settings is kept in ``failure``."""
        try:
            self._body = ExecutorBody(
                self, self._config, self._robot_id, self._instance, self._steady, self._time_moved
            )
        except ConfigError as error:
            self.failure = error
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Begin an episode."""
        if self._body is not None:
            self._body.activate()
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Publish the safe output, and command nothing any more."""
        self.stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Remove the topics, whatever state somebody has brought the node to."""
        self.stop()
        if not self._ticking.acquire(timeout=CLEANUP_S):
            self.get_logger().error('the control thread stalls: its topics are not removed')
            return TransitionCallbackReturn.FAILURE
        try:
            body, self._body = self._body, None
        finally:
            self._ticking.release()
        if body is not None:
            body.close()
        return super().on_cleanup(state)

    on_shutdown = on_error = on_cleanup

    def control_tick(self, now_ns: int) -> int:
        """Execute the row of this tick, if there is one; return when to be called next [ns]."""
        with self._ticking:
            return self._body.tick(now_ns) if self._body is not None else now_ns + IDLE_NS

    def stop(self) -> None:
        """Publish the safe output; from any thread, and without waiting for any other."""
        if (body := self._body) is not None:
            body.stop()

    def flush(self, seconds: float) -> None:
        """Wait until the controllers have the safe output, at most so long [s]."""
        if (body := self._body) is not None:
            body.flush(seconds)

    def stalled(self, late_ns: int) -> None:
        """Publish the safe output in place of a control thread that is late [ns]."""
        if (body := self._body) is not None:
            body.stalled(late_ns)
