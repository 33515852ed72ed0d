# SPDX-License-Identifier: Apache-2.0
"""
What the decision log costs the engine, in share of the CPU time that it takes.

Run: ``.venv/bin/python benchmarks/decision_log.py``. A real engine process serves 100 requests a
second of 18 robots on a model that takes 5 ms and computes nothing, so that the engine's own work
is all there is; the goal is 2 % of it. Two engines with a log and without one differ by more than
that from run to run on a busy machine, so the parts of the log are measured by themselves: its
thread, by what the kernel accounts to it; taking calls down, by making the calls of that very run
again on a core that does it and on one that does not; and handing them over with every beat.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.engine.decision_writer import DecisionWriter
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Announce, Done, Dropped, Submit
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.journal import Call, CallKind
from xinfer_ros.sched.log_files import DecisionLog, load_log

GOAL_PERCENT = 2.0
ROBOTS, RATE, START_S = 18, 100, 60.0
THREAD = 'decision log'
REPEATS = 15
MS = 1_000_000


def serve(seconds: float, folder: Path) -> tuple[float, float, DecisionLog]:
    """Return the CPU time of an engine and of the thread of its log [s], and the log."""
    config = ServerConfig(model='fixed:5', decision_log=str(folder), spare_engine=False)
    link = EngineLink(EngineSettings(config))
    link.start(START_S)
    link.receive(START_S)
    busy: set[int] = set()  # robots that wait for their answer
    threading.Thread(target=_receive, args=(link, busy), daemon=True).start()
    process = psutil.Process(link.pid)
    before = process.cpu_times()
    begin = time.monotonic()
    for key in range(1, round(seconds * RATE)):
        time.sleep(max(begin + key / RATE - time.monotonic(), 0.0))
        if key % ROBOTS not in busy:  # else the machine is too busy for the rate
            busy.add(key % ROBOTS)
            for record in _request(key):
                link.send(record)
    after = process.cpu_times()
    thread_s = _thread_s(process)
    link.close()
    engine_s = after.user + after.system - before.user - before.system
    return engine_s, thread_s, load_log(folder)


def _receive(link: EngineLink, busy: set[int]) -> None:
    while (record := link.receive(START_S)) is not None:
        if isinstance(record, Done | Dropped):
            busy.discard(record.key % ROBOTS)


def _request(key: int) -> tuple[Announce, Submit]:
    robot, now_ns = key % ROBOTS, time.monotonic_ns()
    budget_ns = (90 if robot % 2 else 400) * MS
    sight = QueueSight(
        executed_steps=key // ROBOTS * 5, leftover_steps=9, horizon_steps=15, spacing_ns=33 * MS
    )
    announce = Announce(
        robot=robot, arrival_ns=now_ns, budget_ns=budget_ns, period_ns=180 * MS, sight=sight
    )
    request = Request(
        key=key, robot=robot, slot=robot, arrival_ns=now_ns, budget_ns=budget_ns,
        reserved_ns=4 * MS, period_ns=180 * MS,
    )  # fmt: skip
    return announce, Submit(request=request)


def _thread_s(process: psutil.Process) -> float:
    """Return the CPU time of the log's thread [s], to the nanosecond where the kernel tells it."""
    for task in Path(f'/proc/{process.pid}/task').iterdir():
        if (task / 'comm').read_text().strip() == THREAD:
            return int((task / 'schedstat').read_text().split()[0]) / 1e9
    raise SystemExit(f'the engine has no thread {THREAD!r}')


def _cpu_s(work: Callable[[], None]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def journal_s(log: DecisionLog) -> float:
    """Return what it costs to take the calls of a log down [s]."""
    (part,) = log.parts
    calls: list[Call] = list(part.calls())
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(REPEATS):
        for keeps, taken in times.items():
            core = part.header.core()
            core.restore(part.state)
            core.keep_journal(keeps)
            taken.append(_cpu_s(partial(_make, calls, core)))
    return min(times[True]) - min(times[False])  # the least: others disturb, and only add


def _make(calls: list[Call], core: SchedulerCore) -> None:
    for call in calls:
        call.make(core)


def _drain(writer: DecisionWriter, beats: int) -> None:
    for _ in range(beats):
        writer.drain()


class _NoDisk:
    """Takes everything and keeps nothing; its thread is measured in the engine."""

    failure = None
    backlog_bytes = 0

    def begin(self, part: int) -> None:
        pass

    def put(self, data: bytes) -> None:
        pass

    def close(self, timeout_s: float) -> None:
        pass


class _Told:
    """A core whose journal is known."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        self._pieces = list(pieces)

    def keep_journal(self, keep: bool) -> None:
        pass

    def take_journal(self) -> bytes:
        return self._pieces.pop()

    def snapshot(self) -> bytes:
        return b''


def handing_over_s(log: DecisionLog) -> float:
    """Return what the engine's thread does with every beat [s]."""
    (part,) = log.parts
    times = []
    for _ in range(REPEATS):
        writer = DecisionWriter(_Told(part.pieces), part.header, _NoDisk(), 10**9)
        times.append(_cpu_s(partial(_drain, writer, len(part.pieces))))
    return statistics.median(times)


def main() -> int:
    """Measure, print a table, and return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--seconds', type=float, default=20.0, help='length of the run [s]')
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        engine_s, thread_s, log = serve(seconds, Path(folder))
    kinds = Counter(call.kind for call in log.parts[0].calls())
    size = sum(map(len, log.parts[0].pieces))
    parts = {
        'taking calls down': journal_s(log),
        'handing over': handing_over_s(log),
        'the thread of the log': thread_s,
    }
    requests, calls = kinds[CallKind.SUBMIT], kinds.total()
    print(f'{requests} requests in {seconds:g} s, {calls} calls, {size / requests:.0f} bytes each')
    print(f'engine: {1e3 * engine_s / requests:.3f} ms CPU a request, the log in it')
    for name, cost_s in parts.items():
        print(f'{name:24}{1e6 * cost_s / requests:8.2f} us a request{_percent(cost_s, engine_s)}')
    share = 100 * sum(parts.values()) / engine_s
    good = share <= GOAL_PERCENT
    print(f'all: {share:.2f} %, the goal is {GOAL_PERCENT:g} %: {"good" if good else "MISSED"}')
    return 0 if good else 1


def _percent(cost_s: float, engine_s: float) -> str:
    return f'{100 * cost_s / engine_s:8.2f} %'


if __name__ == '__main__':
    sys.exit(main())
