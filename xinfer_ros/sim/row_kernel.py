# SPDX-License-Identifier: Apache-2.0
"""The event kernel in robot time, in Python: robots execute rows, and their requests stand."""

from collections.abc import Sequence

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.kernel import Kernel
from xinfer_ros.sim.robot_time_metrics import RowCounts
from xinfer_ros.sim.scenario import RowsOfRobots, Scenario
from xinfer_ros.sim.virtual_rows import Sight, VirtualRows


class RowKernel(Kernel):
    """
    Robots tell of their action queue at each control tick.

    As soon as an answer has left the lanes, the robot's next request is registered; it takes the
    newest observation that has arrived when its ViT starts.

    :param rows: what the robots execute
    """

    def __init__(
        self,
        scenario: Scenario,
        rows: RowsOfRobots,
        calibration: Calibration,
        settings: PolicySettings,
        core: SchedulerCore,
    ) -> None:
        super().__init__(scenario, calibration, settings, core)
        self._count_from_ns = round(scenario.round.warm_up_s * 1e9)
        self._spacing_ns = rows.spacing_ns
        self._queues = [VirtualRows(steps) for steps in rows.execution_steps.tolist()]
        self._device = self._busy = BusyDevice(
            settings.device_rates(scenario.true_rates), self._count_from_ns, self._time['end_ns']
        )

    def counts(self) -> RowCounts:
        """
        Return what each robot executed, shape ``(robots, 7)``.

        The mean error of all mirrors stands with every robot, as that of one observation.
        """
        error, busy_ms = self._core.mirror_error, self._busy.busy_ns / 1e6
        return np.array(
            [
                (q.ticks, q.starved, q.ticks - q.starved, 1, error, error, busy_ms)
                for q in self._queues
            ]
        )

    def _send(self, now_ns: int, robot: int) -> None:
        super()._send(now_ns, robot)
        self._control(now_ns, robot)

    def _control(self, now_ns: int, robot: int) -> None:
        """Let a robot execute a row, if there is one, and tell the server."""
        self._queues[robot].tick(is_counted=now_ns >= self._count_from_ns)
        self._push(now_ns + self._robots[robot].draw.up_ns, self._sight, robot)
        if now_ns + self._spacing_ns < self._time['end_ns']:
            self._push(now_ns + self._spacing_ns, self._control, robot)

    def _sight(self, now_ns: int, robot: int) -> None:
        """Let the server have an observation."""
        queue = self._queues[robot]
        sight: Sight = queue.arrive()
        self._core.observe(
            now_ns=now_ns,
            robot=robot,
            executed_steps=sight.executed,
            leftover_steps=sight.left,
            horizon_steps=queue.execution_steps,
            spacing_ns=self._spacing_ns,
        )

    def _executing(self, now_ns: int, number: int, stage: int, keys: Sequence[int]) -> Executing:
        if stage == Stage.VIT:
            for key in keys:
                self._queues[self._robot_of[key]].compute()
        return super()._executing(now_ns, number, stage, keys)

    def _respond(self, now_ns: int, finished: Sequence[int]) -> None:
        for key in finished:
            number = self._robot_of[key]
            robot, queue = self._robots[number], self._queues[number]
            self._core.pace_ns(number)
            at_ns = now_ns + self._time['output_ns'] + robot.draw.down_ns
            self._push(at_ns, self._response, number)
            queue.leave()
            self.responses.append(
                (number, robot.index, robot.sent_ns, at_ns, robot.draw.budget_ns)
            )
            if now_ns < self._time['end_ns']:
                robot.stand(now_ns)
                self._announce(now_ns, number)
                self._submit(now_ns, number)

    def _response(self, now_ns: int, number: int) -> None:
        self._queues[number].take()


class BusyDevice(SimulatedDevice):
    """
    A device that counts how long it is busy.

    :param from_ns: when counting begins
    :param to_ns: when it ends
    """

    def __init__(self, true_rates: np.ndarray, from_ns: int, to_ns: int) -> None:
        super().__init__(true_rates)
        self.busy_ns = 0
        self._from_ns, self._to_ns = from_ns, to_ns
        self._since_ns = 0  # the last change
        self._running = 0

    def start(self, now_ns: int, units: list[Executing]) -> None:
        """Start units."""
        self._count(now_ns)
        self._running += len(units)
        super().start(now_ns, units)

    def end_next(self) -> int:
        """Let the unit end that ends next; return its number."""
        if self.next_end_ns is not None:
            self._count(self.next_end_ns)
        self._running -= 1
        return super().end_next()

    def _count(self, now_ns: int) -> None:
        if self._running and self._from_ns < now_ns <= self._to_ns:
            self.busy_ns += now_ns - max(self._since_ns, self._from_ns)
        self._since_ns = now_ns
