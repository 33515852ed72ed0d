# SPDX-License-Identifier: Apache-2.0
"""CPU time of the processes of a server, thread by thread, so that decoding is told apart."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from xinfer_ros.fleet.bench_record import ServerCpu

DECODE = 'decode'  # how threads are named that decode pictures
Key = TypeVar('Key', bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """
    What processes have used since they began.

    :param processes_s: by the id of processes [s]
    :param threads_s: by the id and the name of threads, none for processes whose threads can't be
        read [s]
    """

    processes_s: dict[int, float]
    threads_s: dict[tuple[int, str], float]

    def since(self, before: 'CpuReading') -> ServerCpu:
        """
        Return what was used since an earlier reading, decoding apart.

        Of a process or thread that has ended in between nothing counts, of a new one everything.
        """
        passed_s = _passed_s(self.processes_s, before.processes_s)
        decode = {key: used for key, used in self.threads_s.items() if key[1].startswith(DECODE)}
        if not decode:
            return ServerCpu(total_s=passed_s)
        decode_s = _passed_s(decode, before.threads_s)
        return ServerCpu(total_s=passed_s - decode_s, decode_s=decode_s)


def read_cpu(pids: Sequence[int]) -> CpuReading | None:
    """Return what processes and their children have used; None if there are none."""
    processes_s, threads_s = dict[int, float](), dict[tuple[int, str], float]()
    for process in _with_children(pids):
        try:
            used = process.cpu_times()
            threads = process.threads()
        except psutil.Error:
            continue
        processes_s[process.pid] = used.user + used.system
        for thread in threads:
            key = (thread.id, _name(process.pid, thread.id))
            threads_s[key] = thread.user_time + thread.system_time
    return CpuReading(processes_s=processes_s, threads_s=threads_s) if processes_s else None


def _passed_s(now_s: Mapping[Key, float], before_s: Mapping[Key, float]) -> float:
    return sum(used_s - before_s.get(key, 0.0) for key, used_s in now_s.items())


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
