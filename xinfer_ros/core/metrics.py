# SPDX-License-Identifier: Apache-2.0
"""Counters and latency windows, and what a robot reports of itself."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from xinfer_ros.errors import Reason


def percentile_ns(times_ns: Iterable[int], share: float) -> int:
    """
    Return a percentile of some times [ns], 0 if there is none.

    :param share: 0 to 100 [%]
    """
    values = sorted(times_ns)  # numpy's percentile takes twenty times as long
    if not values:
        return 0
    place = (len(values) - 1) * (share / 100)
    low = int(place)
    part, below, above = place - low, values[low], values[min(low + 1, len(values) - 1)]
    step = float(above - below)
    return int(below + step * part if part < 0.5 else above - step * (1 - part))


class LatencyWindow:
    """
    The last latencies and their percentiles.

    :param size: number of latencies kept; older ones are forgotten
    """

    def __init__(self, size: int = 256) -> None:
        self._values: deque[int] = deque(maxlen=size)

    def add(self, latency_ns: int) -> None:
        """Take in one latency [ns]."""
        self._values.append(latency_ns)

    def percentile_ns(self, share: float) -> int:
        """
        Return a percentile of the window [ns], 0 while it is empty.

        :param share: 0 to 100 [%]
        """
        return percentile_ns(self._values, share)


class ClockSkew:
    """
    How far the clock of a robot is ahead of the server's, as far as messages can tell.

    The difference of two wall clocks at an arrival is the skew less the time on the way, which is
    never negative; so the largest of late is the best. For people alone: nothing is decided by it.

    :param size: arrivals that count; older ones are forgotten, as clocks may be set
    """

    def __init__(self, size: int = 32) -> None:
        self._leads_ns: deque[int] = deque(maxlen=size)

    def add(self, stamp_ns: int, arrival_ns: int) -> None:
        """
        Take in a message.

        :param stamp_ns: when the robot says that it was sent, its wall clock [ns]
        :param arrival_ns: when it arrived, the server's wall clock [ns]
        """
        self._leads_ns.append(stamp_ns - arrival_ns)

    @property
    def skew_ns(self) -> int | None:
        """Return by how much the robot's clock is ahead [ns], None before the first message."""
        return max(self._leads_ns) if self._leads_ns else None


class ExecutorPhase(IntEnum):
    """What an executor is doing; the constants of msg/ExecutorState.msg."""

    REGISTERING = 0
    HOLDING = 1
    RUNNING = 2
    STOPPED = 3


@dataclass(slots=True, kw_only=True)
class RobotReport:
    """
    What one executor has seen since it started; fields as in msg/ExecutorState.msg.

    ``reasons`` counts the reason codes of answers without rows, of chunks that were refused, and
    of refusals at registration.
    """

    robot_id: str = ''
    phase: ExecutorPhase = ExecutorPhase.REGISTERING
    session: int = 0
    epoch: int = 0
    episode: int = 0
    executed_steps: int = 0
    queued_steps: int = 0
    ticks: int = 0
    starved_ticks: int = 0
    requests: int = 0
    chunks: int = 0
    on_time: int = 0
    unanswered: int = 0
    misaddressed: int = 0
    degraded_chunks: int = 0
    handoff_violations: int = 0
    overfrozen_steps: int = 0
    commitment_steps: int = 0
    execution_mode: str = 'rtc'
    minimum_period_ns: int = 0
    budget_ns: int = 0
    budget_reason: str = ''
    superseded: int = 0
    trigger_misses: int = 0
    overruns: int = 0
    skipped_steps: int = 0
    handoff_jump: float = 0.0
    handoff_jump_max: float = 0.0
    motion: float = 0.0
    hold: str = ''
    brain: str = ''
    latency_p50_ns: int = 0
    latency_p99_ns: int = 0
    network_p50_ns: int = 0
    network_p99_ns: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
