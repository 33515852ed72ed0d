# SPDX-License-Identifier: Apache-2.0
"""A real front end with a view of its fleet; engine, robots and time are played by the test."""

from typing import Any

import numpy as np
from engine.scripted_engine import Bench

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.robots import Robot
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.fleet_view import FleetView, ViewSettings

MS = 1_000_000
S = 1000 * MS
ROWS = np.zeros((8, 3), np.float32)


class ViewedFleet:
    """
    Serves robots whose engine needs the time that it is told.

    :param changes: settings of the server other than the defaults
    """

    def __init__(self, max_robots: int = 4, **changes: Any) -> None:
        self.view = FleetView(ViewSettings.from_config(ServerConfig(**changes)))
        self.bench = Bench(max_robots=max_robots, observer=self.view)
        self.view.attach(self.bench.front_end)
        self.bench.engine.become_ready(7)

    @property
    def now_ns(self) -> int:
        """Return the present time [ns]."""
        return self.bench.clock.now_ns()

    def pass_ms(self, ms: float) -> None:
        """Let time pass."""
        self.bench.clock.advance(round(ms * MS))

    def robot(self, name: str = 'r0', instance: int = 1) -> Robot:
        """Register a robot."""
        return self.bench.robot(name, instance)

    def serve(self, robot: Robot, request_id: int, ms: float, **changes: Any) -> None:
        """Let a robot ask, and answer it with rows after this time; 20 ms are computed."""
        self.bench.ask(robot, request_id, **changes)
        self.pass_ms(ms)
        self.bench.engine.finish(
            self.bench.engine.submitted()[-1],
            ROWS,
            queue_ns=round(max(ms - 20, 0) * MS),
            vit_ns=5 * MS,
            prefill_ns=5 * MS,
            action_ns=10 * MS,
        )

    def status(self) -> FleetStatus:
        """Return the status of this moment."""
        return self.view.status(self.now_ns)

    def of(self, name: str = 'r0') -> RobotStatus:
        """Return the status of a robot."""
        return next(robot for robot in self.status().robots if robot.robot_id == name)
