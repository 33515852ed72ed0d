# SPDX-License-Identifier: Apache-2.0
"""One run of a fleet: started, warmed up, watched, perhaps hurt on purpose, and judged."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.live import Live

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import ConfigError, XinferError
from xinfer_ros.fleet.table import live_table, summary_lines, summary_table
from xinfer_ros.fleet.verdict import FleetResult, faults, fleet_result, refused_robots

REFRESH_S = 0.5
QUICK_S = 0.1  # after a kill, to time the recovery
PLAIN_LINE_S = 5.0
RESUME_LIMIT_S = 5.0
SILENCE_S = 3.0
RECOVERY_LIMIT_S = 30.0


class Processes(Protocol):
    """The processes of the fleet."""

    def check(self) -> str | None:
        """Start again what may be; return what is wrong if something has ended that must not."""
        ...

    def pid(self, executable: str) -> int:
        """Return a process id."""
        ...


class Watch(Protocol):
    """What is heard of the fleet."""

    @property
    def epoch(self) -> int:
        """Return the epoch that the server announced."""
        ...

    @property
    def engine_pid(self) -> int:
        """Return the process id of the engine."""
        ...

    @property
    def server_is_ready(self) -> bool:
        """Return whether the server is ready."""
        ...

    def reports(self) -> dict[str, RobotReport]:
        """Return the newest report of each robot."""
        ...

    def wait_for_news(self, seconds: float) -> None:
        """Let time pass while reports come in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """
    How a fleet is run.

    :param robots: ids of the robots
    :param duration_s: time that counts, after start and warm-up [s]
    :param warm_up_s: time after the last robot's first row that does not count [s]
    :param start_timeout_s: time for every robot to execute its first row [s]
    :param allowed_starved_share: share of starved ticks that passes, 0 to 1
    :param kill: process to kill with SIGKILL, ``server`` or ``engine``; empty for none
    :param kill_at_s: when, within the time that counts [s]
    """

    robots: tuple[str, ...]
    duration_s: float
    warm_up_s: float
    start_timeout_s: float
    allowed_starved_share: float
    kill: str
    kill_at_s: float


class RunFailedError(XinferError):
    """The fleet could not be run to its end."""


class FleetRun:
    """
    Runs a fleet whose processes have been started.

    :param plan: how
    :param processes: the processes
    :param watch: what is heard of them
    :param clock: the steady clock
    :param console: where the table goes; without a terminal, a line every few seconds
    """

    def __init__(
        self, plan: RunPlan, processes: Processes, watch: Watch, clock: Clock, console: Console
    ) -> None:
        self._plan, self._processes, self._watch = plan, processes, watch
        self._clock, self._console = clock, console
        self._live: Live | None = None
        self._printed_s = 0.0
        self._killed_s: float | None = None
        self._old_epoch = 0
        self._resumed_s: dict[str, float] = {}
        self._ticks: dict[str, tuple[int, float]] = {}
        self._ready_again_s: float | None = None

    def run(self) -> list[str]:
        """
        Run to the end, print the summary, and return what was wrong; an empty list is success.

        :raises ConfigError: if the kill would come after the end
        :raises RunFailedError: if the fleet does not start, or a process ends that must not
        """
        plan = self._plan
        if plan.kill and plan.kill_at_s >= plan.duration_s:
            raise ConfigError(
                f'a kill at {plan.kill_at_s:g} s needs a longer run than {plan.duration_s:g} s'
            )
        if self._console.is_terminal:
            with Live(console=self._console, transient=True, auto_refresh=False) as live:
                self._live = live
                result = self._phases()
        else:
            result = self._phases()
        title = f'{len(plan.robots)} robots, {plan.duration_s:g} s after the warm-up'
        self._console.print(summary_table(title, result))
        for line in summary_lines(result):
            self._console.print(line, highlight=False, soft_wrap=True)
        if plan.kill:
            return self._recovery_faults() + _misaddressed(result) + self._silent()
        return faults(result, plan.allowed_starved_share) + self._silent()

    def _phases(self) -> FleetResult:
        plan = self._plan
        start_s = self._now_s()
        while not self._all_moving():
            if self._now_s() - start_s > plan.start_timeout_s:
                raise RunFailedError(self._missing())
            self._step('starting: loading the model, waiting for the first rows')
        warm_s = self._now_s()
        while self._now_s() - warm_s < plan.warm_up_s:
            self._step('warming up')
        before = self._known_reports()
        counted_s = self._now_s()
        while (passed_s := self._now_s() - counted_s) < plan.duration_s:
            if plan.kill and self._killed_s is None and passed_s >= plan.kill_at_s:
                self._kill()
            self._step(f'{passed_s:.0f} of {plan.duration_s:g} s')
            self._note_recovery()
        while plan.kill and not self._is_recovered() and self._since_kill_s() < RECOVERY_LIMIT_S:
            self._step('waiting for the robots to come back')
            self._note_recovery()
        return fleet_result(before, self._known_reports())

    def _step(self, title: str) -> None:
        self._watch.wait_for_news(REFRESH_S if self._killed_s is None else QUICK_S)
        failure = self._processes.check()
        if failure is not None:
            raise RunFailedError(f'{failure}; its last words stand above')
        reports = self._watch.reports()
        if refused := refused_robots(reports):
            raise RunFailedError(f'the server refuses {"; ".join(refused)}')
        for robot, report in reports.items():
            if self._ticks.get(robot, (-1, 0.0))[0] != report.ticks:
                self._ticks[robot] = (report.ticks, self._now_s())
        if self._live is not None:
            self._live.update(live_table(title, self._plan.robots, reports), refresh=True)
        elif self._now_s() - self._printed_s >= PLAIN_LINE_S:
            self._printed_s = self._now_s()
            self._console.print(_plain_line(title, reports), highlight=False, soft_wrap=True)

    def _silent(self) -> list[str]:
        """Return the robots whose control ticks are not heard of any more."""
        now_s = self._now_s()
        return [
            f'{robot} has not been heard for {now_s - heard_s:.1f} s'
            for robot, (_, heard_s) in self._ticks.items()
            if now_s - heard_s > SILENCE_S
        ]

    def _now_s(self) -> float:
        return self._clock.now_ns() / 1e9

    def _all_moving(self) -> bool:
        reports = self._watch.reports()
        return all(robot in reports and reports[robot].ticks for robot in self._plan.robots)

    def _known_reports(self) -> dict[str, RobotReport]:
        reports = self._watch.reports()
        return {robot: reports[robot] for robot in self._plan.robots}

    def _missing(self) -> str:
        reports = self._watch.reports()
        still = [r for r in self._plan.robots if r not in reports or not reports[r].ticks]
        state = 'is ready' if self._watch.server_is_ready else 'is not ready'
        return (
            f'{", ".join(still)} did not move within {self._plan.start_timeout_s:g} s; '
            f'the server {state}'
        )

    def _kill(self) -> None:
        target = self._plan.kill
        pid = self._watch.engine_pid if target == 'engine' else self._processes.pid(target)
        if pid <= 0:
            raise RunFailedError(f'the {target} process is not known, so it cannot be killed')
        self._old_epoch = self._watch.epoch
        self._console.print(
            f'killing the {target} process {pid} (SIGKILL)', highlight=False, soft_wrap=True
        )
        os.kill(pid, signal.SIGKILL)
        self._killed_s = self._now_s()

    def _is_recovered(self) -> bool:
        return self._ready_again_s is not None and len(self._resumed_s) == len(self._plan.robots)

    def _since_kill_s(self) -> float:
        return self._now_s() - self._killed_s if self._killed_s is not None else 0.0

    def _note_recovery(self) -> None:
        epoch = self._watch.epoch
        if self._killed_s is None or epoch == self._old_epoch:
            return
        now_s = self._now_s()
        if self._ready_again_s is None and self._watch.server_is_ready:
            self._ready_again_s = now_s
        for robot, report in self._watch.reports().items():
            moving = report.phase is ExecutorPhase.RUNNING and report.epoch == epoch
            if moving and robot not in self._resumed_s:
                self._resumed_s[robot] = now_s

    def _recovery_faults(self) -> list[str]:
        assert self._killed_s is not None
        late = [robot for robot in self._plan.robots if robot not in self._resumed_s]
        if late or self._ready_again_s is None:
            return [f'{", ".join(late) or "the server"} did not come back after the kill']
        last_s = max(self._resumed_s.values())
        ready_s = self._ready_again_s - self._killed_s
        after_ready_s = last_s - self._ready_again_s
        self._console.print(
            f'{self._plan.kill} killed; ready again after {ready_s:.1f} s, the last robot moved '
            f'{last_s - self._killed_s:.1f} s after the kill, under a new epoch',
            highlight=False,
            soft_wrap=True,
        )
        limit_s = RESUME_LIMIT_S if self._plan.kill == 'server' else RESUME_LIMIT_S - ready_s
        if after_ready_s > limit_s:
            return [f'motion resumed {after_ready_s:.1f} s after the return, not {limit_s:.1f}']
        return []


def _misaddressed(result: FleetResult) -> list[str]:
    wrong = result.total('misaddressed')
    return [f'{wrong} chunks were meant for somebody else'] if wrong else []


def _plain_line(title: str, reports: Mapping[str, RobotReport]) -> str:
    robots: Sequence[RobotReport] = list(reports.values())
    chunks = sum(r.chunks for r in robots)
    on_time = 100 * sum(r.on_time for r in robots) / chunks if chunks else 0.0
    worst_ms = max((r.latency_p99_ns for r in robots), default=0) / 1e6
    starved = sum(r.starved_ticks for r in robots)
    return (
        f'{title}: {len(robots)} robots heard, {chunks} chunks, {on_time:.1f} % on time, '
        f'worst P99 {worst_ms:.0f} ms, {starved} starved ticks'
    )
