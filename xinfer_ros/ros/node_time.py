# SPDX-License-Identifier: Apache-2.0
"""The clock that control ticks follow: the steady one, or the simulated time of the node."""

from collections.abc import Callable

from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node

PAUSED_NS = 100_000_000  # between two looks while simulated time stands still


class NodeTime:
    """
    Simulated if ``use_sim_time`` is set: then its rate, pauses and jumps are those of the robot.

    :param node: whose time it is
    :param moved: called whenever simulated time has moved, in rclpy's thread
    """

    def __init__(self, node: Node, moved: Callable[[], None]) -> None:
        self._clock = node.get_clock()
        self.is_simulated = bool(node.get_parameter('use_sim_time').value)
        self._jumps = None
        if self.is_simulated:
            any_step = JumpThreshold(
                min_forward=Duration(nanoseconds=1),
                min_backward=Duration(nanoseconds=-1),
                on_clock_change=True,
            )
            self._jumps = self._clock.create_jump_callback(
                any_step, post_callback=lambda _: moved()
            )

    @property
    def has_begun(self) -> bool:
        """Return whether there is a time at all; simulated time comes with the first /clock."""
        return not self.is_simulated or self._clock.now().nanoseconds > 0

    def now_ns(self, steady_ns: int) -> int:
        """
        Return the time that ticks follow [ns].

        :param steady_ns: steady clock [ns]
        """
        return self._clock.now().nanoseconds if self.is_simulated else steady_ns

    def look_again_ns(self, due_ns: int, steady_ns: int) -> int:
        """
        Return when to look whether a tick is due, steady clock [ns].

        :param due_ns: when the tick is due, by ``now_ns`` [ns]
        :param steady_ns: steady clock [ns]
        """
        return steady_ns + PAUSED_NS if self.is_simulated else due_ns

    def close(self) -> None:
        """Call nobody any more."""
        if self._jumps is not None:
            self._jumps.unregister()
            self._jumps = None
