# SPDX-License-Identifier: Apache-2.0
"""The last minutes of a fleet, one point a second."""

from collections import deque
from dataclasses import dataclass

from xinfer_ros.observe.fleet_status import FleetStatus

KEPT_S = 300
SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The fleet at a moment; shares are NaN and latencies None while there is no response."""

    at_ms: float
    robots: int
    attainment: float
    starved_share: float
    responses_hz: float
    goodput_hz: float
    latency_p50_ms: float | None
    latency_p99_ms: float | None


class FleetHistory:
    """Fed with every status; memory is bounded. Not thread-safe."""

    def __init__(self) -> None:
        self._points: deque[HistoryPoint] = deque(maxlen=KEPT_S)
        self._next_ns: int | None = None

    def take(self, status: FleetStatus, now_ns: int) -> None:
        """
        Take in a status; of those within a second, the first is kept.

        :param now_ns: server's monotonic clock [ns]
        """
        if self._next_ns is None or now_ns >= self._next_ns:
            self._points.append(_point(status, now_ns))
            self._next_ns = max((self._next_ns or now_ns) + SECOND_NS, now_ns + SECOND_NS // 2)

    def points(self) -> list[HistoryPoint]:
        """Return the points, oldest first."""
        return list(self._points)


def _point(status: FleetStatus, now_ns: int) -> HistoryPoint:
    served = status.responses_hz > 0
    return HistoryPoint(
        at_ms=now_ns / 1e6,
        robots=sum(robot.registered for robot in status.robots),
        attainment=status.attainment,
        starved_share=status.starved_share,
        responses_hz=status.responses_hz,
        goodput_hz=status.goodput_hz,
        latency_p50_ms=status.latency_p50_ns / 1e6 if served else None,
        latency_p99_ms=status.latency_p99_ns / 1e6 if served else None,
    )
