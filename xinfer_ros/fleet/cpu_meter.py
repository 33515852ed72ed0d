# SPDX-License-Identifier: Apache-2.0
"""CPU time of the processes of a server, thread by thread, so that decoding is told apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from xinfer_ros.fleet.bench_record import ServerCpu

DECODE = 'decode'  # how threads are named that decode pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """
    What processes have used since they began.

    :param total_s: all of them together [s]
    :param threads_s: by the name of threads, none for processes whose threads can't be read [s]
    """

    total_s: float
    threads_s: dict[str, float]

    def since(self, before: 'CpuReading') -> ServerCpu:
        """Return what was used since an earlier reading, decoding apart."""
        passed_s = self.total_s - before.total_s
        named = [name for name in self.threads_s if name.startswith(DECODE)]
        if not named:
            return ServerCpu(total_s=passed_s)
        decode_s = sum(self.threads_s[n] - before.threads_s.get(n, 0.0) for n in named)
        return ServerCpu(total_s=passed_s - decode_s, decode_s=decode_s)


def read_cpu(pids: Sequence[int]) -> CpuReading | None:
    """Return what processes and their children have used; None if there are none."""
    total_s, threads_s, alive = 0.0, dict[str, float](), False
    for process in _with_children(pids):
        try:
            used = process.cpu_times()
            threads = process.threads()
        except psutil.Error:
            continue
        alive = True
        total_s += used.user + used.system
        for thread in threads:
            name = _name(process.pid, thread.id)
            threads_s[name] = threads_s.get(name, 0.0) + thread.user_time + thread.system_time
    return CpuReading(total_s=total_s, threads_s=threads_s) if alive else None


def _with_children(pids: Sequence[int]) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        try:
            process = psutil.Process(pid)
            for each in (process, *process.children(recursive=True)):
                found[each.pid] = each
        except psutil.Error:
            continue
    return list(found.values())


def _name(pid: int, thread: int) -> str:
    try:
        return Path(f'/proc/{pid}/task/{thread}/comm').read_text().strip()
    except OSError:
        return ''
