# SPDX-License-Identifier: Apache-2.0
"""The emulated robots of one process: who is due, who gets an answer, and when to look again."""

import numpy as np

from xinfer_ros.robot.emulated_robot import (
    EmulatedAnswer,
    EmulatedDraft,
    EmulatedRobot,
    EmulatedRobotPlan,
)
from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.request_log import RequestLog

NEVER_NS = 2**62
_KEPT = 1 << 16  # wake-ups whose lag is kept; later ones overwrite the first


class EmulatedFleet:
    """
    Robots in closed loop; their owner sends, receives and reads the clock.

    :param plan: of the process
    :param start_ns: common start of the fleet, monotonic clock [ns]
    :param spacing_ns: of the rows that the robots play [ns]
    :param max_commitment_steps: the most that the server honours [steps]
    """

    def __init__(
        self, plan: LoadPlan, start_ns: int, spacing_ns: int, max_commitment_steps: int = 1000
    ) -> None:
        self.robots = [
            EmulatedRobot(
                EmulatedRobotPlan(
                    number=number,
                    start_ns=start_ns + first_ns,
                    end_ns=start_ns + plan.duration_ns,
                    minimum_period_ns=plan.period_ns,
                    budgets_ns=np.asarray(budgets_ns, np.int64),
                    spacing_ns=spacing_ns,
                    # rises from fleet to fleet, as a session that goes on wants it
                    first_request_id=start_ns // 1_000,
                    max_commitment_steps=max_commitment_steps,
                    keeps_pace=plan.keeps_pace,
                )
            )
            for number, first_ns, budgets_ns in zip(
                plan.robots, plan.first_sends_ns, plan.budgets_ns, strict=True
            )
        ]
        self._due_ns = [self._look(robot) for robot in self.robots]
        self._lag_ns = np.zeros(_KEPT, np.int64)
        self._woken = 0
        self.answered = 0

    @staticmethod
    def _look(robot: EmulatedRobot) -> int:
        due_ns = robot.due_ns
        return NEVER_NS if due_ns is None else due_ns

    @property
    def next_ns(self) -> int | None:
        """Return when to call ``send`` next [ns], None when every robot is done."""
        first_ns = min(self._due_ns)
        return None if first_ns == NEVER_NS else first_ns

    @property
    def num_sent(self) -> int:
        """Return the requests that have left."""
        return sum(robot.num_sent for robot in self.robots)

    def woke(self, now_ns: int, wanted_ns: int) -> None:
        """Note a wake-up by the clock: how late the loop itself is, whoever is due."""
        if now_ns >= wanted_ns:
            self._lag_ns[self._woken % _KEPT] = now_ns - wanted_ns
            self._woken += 1

    def send(self, now_ns: int) -> tuple[int, EmulatedDraft] | None:
        """
        Return the request of the robot that has been due longest, and its place in ``robots``.

        One at a time, so that each is sent at the time that is noted for it. Requests that got no
        answer are given up here; None if nobody is due.
        """
        while True:
            due_ns = min(self._due_ns)
            if due_ns > now_ns:
                return None
            place = self._due_ns.index(due_ns)
            robot = self.robots[place]
            draft = None if robot.give_up(now_ns) else robot.send(now_ns)
            self._due_ns[place] = self._look(robot)
            if draft is not None:
                return place, draft

    def take(self, place: int, now_ns: int, answer: EmulatedAnswer) -> None:
        """Take in the answer to a robot, which may make its next request due."""
        if self.robots[place].take(now_ns, answer):
            self.answered += 1
            self._due_ns[place] = self._look(self.robots[place])

    def log(self) -> RequestLog:
        """Return what came of every request, with the lag of the loop."""
        log = RequestLog.joined([robot.log() for robot in self.robots])
        lag_ns = self._lag_ns[: min(self._woken, _KEPT)]
        return RequestLog(
            **{name: getattr(log, name) for name in RequestLog.__slots__ if name != 'lag_ns'},
            lag_ns=lag_ns,
        )
