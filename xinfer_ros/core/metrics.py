# SPDX-License-Identifier: Apache-2.0
"""Counters and latency windows, and what a robot reports of itself."""

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from xinfer_ros.errors import Reason


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
        return int(np.percentile(list(self._values), share)) if self._values else 0


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

    ``reasons`` counts the reason codes of answers without rows and of chunks that were refused.
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
    latency_p50_ns: int = 0
    latency_p99_ns: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
