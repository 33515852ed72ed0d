# SPDX-License-Identifier: Apache-2.0
"""How a fleet is served: what an operator looks at first."""

import math
from collections import Counter
from dataclasses import dataclass, field

from xinfer_ros.core.health import Level
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotStatus:
    """
    How one robot is served, as the server sees it; fields as in msg/RobotStatus.msg.

    Shares are NaN while there is nothing to take a share of.

    :param door: how it reaches the server: ros or websocket
    :param text: what is wrong and what would help
    :param clock_skew_ns: by how much its wall clock is ahead, None: not known; in the diagnostics
    :param in_flight: whether it waits for an answer
    :param registered: False for one that was lost of late and is still shown
    """

    robot_id: str
    robot_namespace: str = ''
    door: str = 'ros'
    level: Level = Level.OK
    text: str = ''
    silent_s: float = 0.0
    requests: int = 0
    responses: int = 0
    refused: int = 0
    responses_hz: float = 0.0
    goodput_hz: float = 0.0
    attainment: float = math.nan
    starved_share: float = math.nan
    budget_ns: int = 0
    minimum_period_ns: int = 0
    latency_p50_ns: int = 0
    latency_p99_ns: int = 0
    network_p50_ns: int = 0
    queued_steps: int = 0
    commitment_steps: int = 0
    clock_skew_ns: int | None = None
    in_flight: bool = False
    registered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """
    How the fleet is served; fields as in msg/FleetStatus.msg, but for its stamp.

    Shares are NaN while there is nothing to take a share of.

    :param reasons: answers without rows since the start, by reason
    :param robots: by id; those registered, and those lost of late
    :param level: how the server is, ``text`` says it in words; in the diagnostics
    :param correction: work that units of each stage hold over the calibration's; in the metrics
    :param mirror_error: mean error of the executed steps that were foreseen of robots; in the
        metrics [steps]
    """

    epoch: int = 0
    state: ServerPhase = ServerPhase.STARTING
    model: str = ''
    scheduling_policy: str = ''
    window_s: float = 10.0
    requests: int = 0
    responses: int = 0
    responses_hz: float = 0.0
    goodput_hz: float = 0.0
    attainment: float = math.nan
    starved_share: float = math.nan
    latency_p50_ns: int = 0
    latency_p99_ns: int = 0
    slots_used: int = 0
    num_slots: int = 0
    waiting: tuple[int, int, int] = (0, 0, 0)
    occupancy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    protected_requests: int = 0
    prediction_error_ms: float = math.nan
    reasons: Counter[Reason] = field(default_factory=Counter)
    robots: tuple[RobotStatus, ...] = ()
    max_robots: int = 0
    level: Level = Level.OK
    text: str = ''
    correction: tuple[float, float, float] = (1.0, 1.0, 1.0)
    mirror_error: float = 0.0
