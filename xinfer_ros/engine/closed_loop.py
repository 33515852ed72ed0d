# SPDX-License-Identifier: Apache-2.0
"""A server without ROS, and robots that ask it again as soon as they are answered."""

import queue
import threading
from dataclasses import dataclass, replace

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.bare_server import start_server
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.sample_robot import SampleRobot
from xinfer_ros.errors import ModelError, Reason

BUDGET_NS = 20_000_000_000  # nothing is late or expires: what counts is how many are answered
PERIOD_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    What robots got in a span of time.

    :param seconds: how long it was [s]
    :param latency_ns: from request to answer, of every answer in it [ns]
    """

    seconds: float
    latency_ns: tuple[int, ...]

    @property
    def per_s(self) -> float:
        """Return the answers per second [1/s]."""
        return len(self.latency_ns) / self.seconds


class ClosedLoop:
    """
    A front end with its engine process and robots in closed loop, one request each.

    :param config: of the server; as many robots are admitted as there are
    :param num_robots: how many ask
    :param clock: the steady clock
    :raises ModelError: if the engine does not start
    """

    def __init__(self, config: ServerConfig, num_robots: int, clock: Clock) -> None:
        config = replace(config, max_robots=num_robots, admission='none', spare_engine=False)
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_ns: dict[Robot, int] = {}
        self._latency_ns: list[int] = []
        self._run: int | None = None  # number of the run, None while robots rest
        self._runs = 0
        self._due: queue.SimpleQueue[tuple[int, Robot] | None] = queue.SimpleQueue()
        self._idle = threading.Condition(self._lock)
        self.failure = ''
        self._front_end = start_server(config, clock, self._answered)
        try:
            self._robots = self._join(num_robots)
        except Exception:
            self._front_end.close()
            raise
        self._thread = threading.Thread(target=self._ask_all, name='robots', daemon=True)
        self._thread.start()

    def _join(self, count: int) -> dict[Robot, SampleRobot]:
        contract = self._front_end.contract()
        robots = [
            SampleRobot(
                self._front_end,
                contract,
                self._clock,
                f'robot_{number}',
                budget_ns=BUDGET_NS,
                period_ns=PERIOD_NS,
            )
            for number in range(count)
        ]
        return {robot.robot: robot for robot in robots}

    def run(self, seconds: float) -> Window:
        """
        Let the robots ask for a while, from rest to rest.

        :param seconds: for how long new requests leave [s]
        :returns: what came until the last answer
        :raises ModelError: if a request failed
        """
        began_ns = self._clock.now_ns()
        end_ns = began_ns + round(seconds * 1e9)
        with self._idle:
            self._latency_ns = []
            self._runs += 1
            self._run = self._runs
            for robot in self._robots:
                self._due.put((self._run, robot))
        with self._idle:
            while not self.failure and self._clock.now_ns() < end_ns:
                self._idle.wait(max(end_ns - self._clock.now_ns(), 0) / 1e9)
            self._run = None
            rested = self._idle.wait_for(lambda: not self._asked_ns, timeout=30.0)
            if self.failure or not rested:
                raise ModelError(self.failure or 'a request was not answered')
            elapsed_s = (self._clock.now_ns() - began_ns) / 1e9
            return Window(seconds=elapsed_s, latency_ns=tuple(self._latency_ns))

    def close(self) -> None:
        """End the engine process."""
        self._due.put(None)
        self._thread.join()
        self._front_end.close()

    def _ask_all(self) -> None:
        while (due := self._due.get()) is not None:
            run, robot = due
            with self._lock:
                if run != self._run:
                    continue
                self._asked_ns[robot] = self._clock.now_ns()
            self._robots[robot].ask()

    def _answered(self, robot: Robot, answer: Answer) -> None:
        with self._idle:
            asked_ns = self._asked_ns.pop(robot, None)
            if answer.reason is not Reason.OK:
                self.failure = self.failure or f'{answer.reason.name}: {answer.detail}'
            elif asked_ns is not None:
                self._latency_ns.append(self._clock.now_ns() - asked_ns)
            if self._run is not None:
                self._due.put((self._run, robot))
            self._idle.notify_all()
