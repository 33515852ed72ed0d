# SPDX-License-Identifier: Apache-2.0
"""When a robot with time to spare should ask again: the device's spare responses are shared."""

import math

from xinfer_ros.sched.reference.state import Robot, State
from xinfer_ros.sched.settings import ForesightSettings

FORESEEN = 4  # arrivals of each robot that are looked at
BISECTIONS = 16  # of the common period


class Pacing:
    """Gives robots whose budget is longer than their period a quiet time to ask again."""

    def __init__(self, state: State, settings: ForesightSettings) -> None:
        self._state = state
        self._settings = settings

    def next(self, number: int) -> float:
        """
        Return the time from the arrival that was just answered to the robot's next one.

        0 to leave it to the robot; never more than its response budget.
        """
        robot = self._state.robots[number]
        robot.paced = 0.0
        if not self._settings.pacing or robot.budget <= robot.period:
            return 0.0
        period = min(max(self._common_period(), robot.period), robot.budget)
        if period <= robot.period:
            return 0.0
        robot.paced = self._quietest(number, robot, period) - robot.last_arrival
        return robot.paced

    def _quietest(self, number: int, robot: Robot, period: float) -> float:
        """Return the least crowded time around one period after the robot's last arrival."""
        last, spread = robot.last_arrival, self._settings.pacing_spread
        soonest = max(last + robot.period, self._state.now + self._settings.back_ms)
        latest = last + min(period * (1.0 + spread), robot.budget)
        best = at = max(last + period, soonest)
        least = math.inf
        while at <= latest:
            crowd = self._crowd(number, at)
            if crowd < least:
                least, best = crowd, at
            at += self._settings.pacing_step_ms
        return best

    def _is_foreseen(self, robot: Robot) -> bool:
        gone_at = robot.last_arrival + max(robot.period, robot.budget) + self._settings.gone_ms
        return robot.known and self._state.now <= gone_at

    def _foreseen(self) -> list[Robot]:
        return [robot for robot in self._state.robots if self._is_foreseen(robot)]

    def _common_period(self) -> float:
        """Return the least period by which all with time to spare keep the fleet's rate."""
        affordable = self._settings.pacing_rate_per_ms / self._state.predictor.slowdown()
        robots = self._foreseen()
        low, high = 0.0, max((robot.budget for robot in robots), default=0.0)
        if _fleet_rate(robots, low) <= affordable:
            return low
        if _fleet_rate(robots, high) > affordable:
            return high
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if _fleet_rate(robots, middle) <= affordable:
                high = middle
            else:
                low = middle
        return high

    def _crowd(self, number: int, at: float) -> float:
        """Return the foreseen arrivals of the others around a time, weighted by nearness."""
        crowd, window = 0.0, self._settings.pacing_window_ms
        for k, other in enumerate(self._state.robots):
            if k == number or not self._is_foreseen(other):
                continue
            interval = max(other.period, other.paced)
            arrival = max(other.last_arrival + interval, self._state.now)
            for _ in range(FORESEEN):
                if arrival >= at + window:
                    break
                crowd += max(1.0 - abs(at - arrival) / window, 0.0)
                arrival += interval
        return crowd


def _fleet_rate(robots: list[Robot], period: float) -> float:
    """Return the responses per ms if every robot took this period, within its own bounds."""
    rate = 0.0  # added up in order: sum() of Python 3.12 would round otherwise
    for robot in robots:
        rate += 1.0 / max(min(period, robot.budget), robot.period)
    return rate
