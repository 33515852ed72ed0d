# SPDX-License-Identifier: Apache-2.0
"""One round of one fleet on a running system: played, timed, and judged for its honesty."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.fleet.bench_record import BenchRecord, ServerCpu, Window, bench_record
from xinfer_ros.fleet.bench_system import BenchFailedError, BenchSystem
from xinfer_ros.fleet.cpu_meter import CpuReading, read_cpu
from xinfer_ros.fleet.load_group import LoadGroup
from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.request_log import RequestLog

HEAD_START_NS = 300_000_000  # from the signal to the common start
GRACE_S = 10.0
Tell = Callable[[str], None]


class LateGeneratorError(BenchFailedError):
    """The load generator was late, so that nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """
    One round of one fleet.

    :param log: of every request of the round, the warm-up included
    :param window: what counted
    """

    record: BenchRecord
    log: RequestLog
    window: Window


class BenchRun:
    """
    Measures fleets on systems that run.

    :param plan: how
    :param x_ms: model time, as records tell it [ms]
    :param instance: tells the robots of this run from others
    :param environment: variables of the load generator's processes
    :param clock: the steady clock
    :param output: takes what the processes say
    """

    def __init__(
        self,
        plan: BenchPlan,
        x_ms: float | None,
        instance: int,
        environment: Mapping[str, str],
        clock: Clock,
        output: Tell,
    ) -> None:
        self._plan, self._x_ms, self._instance = plan, x_ms, instance
        self._environment, self._clock, self._output = environment, clock, output
        self._fleets = 0

    def measure(self, system: BenchSystem, robots: int, seed: int, tell: Tell) -> FleetResult:
        """
        Play one round of one fleet.

        :param tell: called with what is going on, about four times a second
        :raises LateGeneratorError: if the load generator was late: nothing was measured
        :raises BenchFailedError: if the round could not be carried to its end
        """
        self._fleets += 1
        with tempfile.TemporaryDirectory(prefix='xinfer_bench_') as folder:
            loads = self._plan.load(
                robots,
                seed,
                instance=self._instance,
                episode=self._fleets,
                images=system.images,
                folder=Path(folder),
            )
            window, cpu = self._play(system, loads, Path(folder), tell)
            log = RequestLog.joined([RequestLog.load(Path(load.log)) for load in loads])
        record = bench_record(
            log,
            window,
            cpu,
            system=system.name,
            robots=robots,
            x_ms=self._x_ms,
            images=system.images,
            seed=seed,
        )
        check_lateness(record, self._plan.lateness_limit_ms, len(loads))
        return FleetResult(record=record, log=log, window=window)

    def _play(
        self, system: BenchSystem, loads: list[LoadPlan], folder: Path, tell: Tell
    ) -> tuple[Window, ServerCpu | None]:
        commands = []
        for number, load in enumerate(loads):
            path = folder / f'plan_{number}.json'
            load.write(path)
            commands.append(system.load_command(path))
        robots = sum(len(load.robots) for load in loads)
        with LoadGroup(commands, self._environment, self._clock, self._output) as group:

            def tick(what: str) -> None:
                if failure := system.check():
                    raise BenchFailedError(failure)
                progress = group.progress
                tell(f'{what}: {progress.sent} requests, {progress.answered} answers')

            title = f'{system.name}, {robots} robots'
            timeout_s = self._plan.start_timeout_s + GRACE_S
            group.wait_ready(timeout_s, lambda: tick(f'{title}, registering'))
            start_ns = self._clock.now_ns() + HEAD_START_NS
            group.start(start_ns)
            begin_ns = start_ns + round(self._plan.warm_up_s * 1e9)
            end_ns = begin_ns + round(self._plan.duration_s * 1e9)
            group.wait_until(begin_ns, lambda: tick(f'{title}, warming up'))
            before, from_ns = read_cpu(system.pids()), self._clock.now_ns()
            group.wait_until(end_ns, lambda: tick(f'{title}, measuring'))
            after, to_ns = read_cpu(system.pids()), self._clock.now_ns()
            longest_ns = max(max(map(max, load.budgets_ns)) for load in loads)
            last_s = retry_after_ns(longest_ns) / 1e9 + GRACE_S
            group.wait_done(last_s, lambda: tick(f'{title}, waiting for the last answers'))
        window = Window(from_ns=from_ns, to_ns=min(to_ns, end_ns))
        return window, _used(before, after)


def _used(before: CpuReading | None, after: CpuReading | None) -> ServerCpu | None:
    return None if before is None or after is None else after.since(before)


def check_lateness(record: BenchRecord, limit_ms: float, processes: int) -> None:
    """
    Refuse a result of a load generator that was late itself.

    :param limit_ms: largest 99 % quantile of its lateness, and of the lag of its loops [ms]
    :param processes: that it had
    :raises LateGeneratorError: says by how much, and what helps
    """
    worst_ms = max(record.lateness_p99_ms, record.loop_lag_p99_ms)
    if worst_ms <= limit_ms:
        return
    raise LateGeneratorError(
        f'{record.system} with {record.robots} robots: the load generator was late by '
        f'{record.lateness_p99_ms:.1f} ms (99 % of its requests; at most '
        f'{record.lateness_max_ms:.1f} ms), its loops by {record.loop_lag_p99_ms:.1f} ms; '
        f'{limit_ms:g} ms are allowed, so nothing was measured. Take fewer robots, more processes '
        f'(now {processes}; --robots-per-process), more cores, or a machine without other work'
    )
