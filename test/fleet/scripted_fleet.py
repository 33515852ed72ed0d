# SPDX-License-Identifier: Apache-2.0
"""A fleet that follows a script on a simulated clock: the processes and what is heard of them."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason, Rejected

TICKS_A_SECOND = 30
END_S = 600.0
Change = Callable[['ScriptedFleet'], None]


class ScriptedFleet:
    """
    Server and robots for ``FleetRun``; implements its ``Processes`` and its ``Watch``.

    Time moves in ``wait_for_news`` alone. A robot that moves gets one chunk for six ticks.

    :param robots: ids of the robots
    :param moving_after_s: when each executes its first row [s]
    """

    def __init__(self, robots: tuple[str, ...], moving_after_s: float = 2.0) -> None:
        self.clock = SimulatedClock(1_000_000_000_000)
        self._start_ns = self.clock.now_ns()
        self._moving_after_s = dict.fromkeys(robots, moving_after_s)
        self._reports: dict[str, RobotReport] = {}
        self._refusals: dict[str, Rejected] = {}
        self._script: list[tuple[float, Change]] = []
        self.epoch, self.engine_pid, self.server_pid = 1, 0, 0
        self.server_is_ready = True
        self.failure: str | None = None
        self.starving: set[str] = set()
        self.behind: set[str] = set()  # still under the old epoch

    def at(self, second: float, change: Change) -> None:
        """Let something happen at a second of the script."""
        self._script.append((second, change))

    def never_moves(self, robot: str) -> None:
        """Keep a robot from its first row."""
        self._moving_after_s[robot] = float('inf')

    def refuse(self, robot: str, reason: Reason, detail: str) -> None:
        """Let the server refuse to register a robot."""
        self.never_moves(robot)
        self._refusals[robot] = Rejected(reason, detail)

    def change(self, robot: str, **changes: int) -> None:
        """Change what a robot reports."""
        self._reports[robot] = replace(self._reports[robot], **changes)

    @property
    def second(self) -> float:
        """Return the second of the script."""
        return (self.clock.now_ns() - self._start_ns) / 1e9

    def wait_for_news(self, seconds: float) -> None:
        """Let time pass: robots tick, and what is due happens."""
        self.clock.advance(round(seconds * 1e9))
        assert self.second < END_S, 'this run never ends'
        for due in [entry for entry in self._script if entry[0] <= self.second]:
            self._script.remove(due)
            due[1](self)
        for robot, after_s in self._moving_after_s.items():
            before = self._reports.get(robot, RobotReport(robot_id=robot))
            ticks = round(seconds * TICKS_A_SECOND) if self.second >= after_s else 0
            starved = ticks if robot in self.starving else 0
            chunks = (ticks - starved) // 6
            moves = ticks > starved
            phase = ExecutorPhase.RUNNING if moves else ExecutorPhase.HOLDING
            is_new = moves and robot not in self.behind
            self._reports[robot] = replace(
                before,
                phase=phase,
                epoch=self.epoch if is_new else before.epoch,
                ticks=before.ticks + ticks,
                starved_ticks=before.starved_ticks + starved,
                requests=before.requests + chunks,
                chunks=before.chunks + chunks,
                on_time=before.on_time + chunks,
            )
        for robot, refusal in self._refusals.items():
            self._reports[robot] = replace(
                self._reports[robot],
                phase=ExecutorPhase.REGISTERING,
                hold=str(refusal),
                reasons=Counter({refusal.reason: 1}),
            )

    def reports(self) -> dict[str, RobotReport]:
        """Return the newest report of each robot."""
        return dict(self._reports)

    def check(self) -> str | None:
        """Return what has ended that must not."""
        return self.failure

    def pid(self, executable: str) -> int:
        """Return the process id of the server."""
        assert executable == 'server'
        return self.server_pid


class Victim:
    """A process that waits to be killed."""

    def __init__(self) -> None:
        command = [sys.executable, '-c', 'import signal; signal.pause()']
        self._process = subprocess.Popen(command, start_new_session=True)

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Wait for its end and return whether that was a SIGKILL."""
        return self._process.wait() == -signal.SIGKILL

    @property
    def is_alive(self) -> bool:
        """Return whether it still waits."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it if nobody did."""
        self._process.kill()
        self._process.wait()
