# SPDX-License-Identifier: Apache-2.0
"""How long answers took, and how much of that was the network, by one clock."""

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.metrics import LatencyWindow, RobotReport
from xinfer_ros.robot.next_send import InFlight


class RoundTrips:
    """
    The answers of late. Not thread-safe: its owner locks.

    What an answer says of its time in the server is a difference of times of the server's clock,
    so that the rest of the round trip is the network, whatever the two clocks show.
    """

    def __init__(self) -> None:
        self._latency, self._network = LatencyWindow(), LatencyWindow()
        self.request_id = 0
        self.round_trip_ns = 0

    def answered(self, request: InFlight, answer: Answer, now_ns: int) -> None:
        """Take in the answer to a request, with rows or without."""
        self.request_id, self.round_trip_ns = request.request_id, now_ns - request.sent_ns
        self._network.add(max(self.round_trip_ns - answer.times.server_ns, 0))

    def accepted(self, latency_ns: int) -> None:
        """Take in the time from a request to its chunk [ns]."""
        self._latency.add(latency_ns)

    def fill(self, report: RobotReport) -> None:
        """Write what is known here into a report."""
        report.latency_p50_ns = self._latency.percentile_ns(50)
        report.latency_p99_ns = self._latency.percentile_ns(99)
        report.network_p50_ns = self._network.percentile_ns(50)
        report.network_p99_ns = self._network.percentile_ns(99)
