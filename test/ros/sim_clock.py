# SPDX-License-Identifier: Apache-2.0
"""A simulated clock that a test publishes."""

from rosgraph_msgs.msg import Clock

from .graph import Graph


class SimClock:
    """
    Publishes /clock and nothing else; moves only when told to.

    :param graph: where it lives
    :param now_ns: where it starts [ns]
    """

    def __init__(self, graph: Graph, now_ns: int) -> None:
        self._graph, self.now_ns = graph, now_ns
        self._publisher = graph.node.create_publisher(Clock, '/clock', 1)

    def say(self) -> None:
        """Publish the present time."""
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(self.now_ns, 1_000_000_000)
        self._publisher.publish(message)

    def wait_for(self, nodes: int) -> None:
        """Wait until so many nodes follow it."""
        self._graph.until(
            lambda: self._publisher.get_subscription_count() >= nodes, 'the clock is followed'
        )

    def run(self, duration_ns: int, step_ns: int, every_s: float) -> None:
        """Move the clock on in steps, one every so many seconds."""
        for _ in range(duration_ns // step_ns):
            self.now_ns += step_ns
            self.say()
            self._graph.spin(every_s)
