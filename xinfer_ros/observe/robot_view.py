# SPDX-License-Identifier: Apache-2.0
"""One robot as the fleet's view has it."""

import math

from xinfer_ros.core.health import Level
from xinfer_ros.core.metrics import percentile_ns
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.observe.fleet_status import RobotStatus
from xinfer_ros.observe.levels import RobotFacts, Thresholds, judge_robot
from xinfer_ros.observe.robot_window import RobotFigures, RobotWindow


class RobotView:
    """
    A robot with its window, from its registration until nobody wants to see it any more.

    :param robot: who it is
    :param window: what it has asked for and got of late
    """

    def __init__(self, robot: Robot, window: RobotWindow) -> None:
        self.robot, self.window = robot, window
        self.mismatch = ''  # why its observations can't reach the server
        self._seen_ns, self._left = 0, False

    @property
    def robot_id(self) -> str:
        """Return its id."""
        return self.robot.registration.robot_id

    @property
    def is_lost(self) -> bool:
        """Return whether its registration is over."""
        return self._left

    def leave(self) -> None:
        """Take in that its registration is over."""
        self._seen_ns, self._left = self.robot.seen_ns, True

    def is_shown(self, now_ns: int, lost_ns: int) -> bool:
        """Return whether it is registered, or was heard less than this ago [ns]."""
        return not self._left or 0 <= now_ns - self._seen_ns <= lost_ns

    def status(
        self, figures: RobotFigures, phase: ServerPhase, limits: Thresholds, now_ns: int
    ) -> RobotStatus:
        """Return how it is served, by what its window holds now [ns]."""
        seen_ns = self._seen_ns if self._left else self.robot.seen_ns
        silent_ns = max(now_ns - seen_ns, 0)
        level, text = self._verdict(figures, phase, limits, silent_ns)
        served = figures.served
        on_time = sum(given.on_time for given in served)
        latencies_ns = [given.times.server_ns for given in served]
        registration, asked = self.robot.registration, figures.asked
        return RobotStatus(
            robot_id=registration.robot_id,
            robot_namespace=registration.namespace,
            door=registration.door,
            level=level,
            text=text,
            silent_s=silent_ns / 1e9,
            requests=figures.requests,
            responses=figures.responses,
            refused=figures.refused,
            responses_hz=len(served) / figures.span_s,
            goodput_hz=on_time / figures.span_s,
            attainment=on_time / len(served) if served else math.nan,
            starved_share=figures.starved_share,
            budget_ns=asked.budget_ns,
            minimum_period_ns=asked.minimum_period_ns,
            latency_p50_ns=percentile_ns(latencies_ns, 50),
            latency_p99_ns=percentile_ns(latencies_ns, 99),
            network_p50_ns=percentile_ns(figures.network_ns, 50),
            queued_steps=figures.queued_steps,
            commitment_steps=asked.commitment_steps,
            clock_skew_ns=self.robot.clock_skew.skew_ns,
            in_flight=figures.in_flight,
            registered=not self._left,
        )

    def _verdict(
        self, figures: RobotFigures, phase: ServerPhase, limits: Thresholds, silent_ns: int
    ) -> tuple[Level, str]:
        if self._left:
            text = f'lost: silent for {silent_ns / 1e9:.0f} s, its place is free; start it again'
            return Level.ERROR, text
        facts = RobotFacts(
            figures=figures, phase=phase, silent_ns=silent_ns, mismatch=self.mismatch
        )
        verdict = judge_robot(facts, limits)
        return verdict.level, verdict.text
