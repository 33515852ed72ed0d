# SPDX-License-Identifier: Apache-2.0
"""
What a request costs the server, thread by thread.

Run: ``.venv/bin/python benchmarks/server_cost.py [--robots 32] [--x-ms 0] [--images jpeg|raw]``.
A server and the robots of ``xinfer bench`` run on this machine; the table says which thread of
the server node and of its engine takes how much CPU a request, and how often it goes to sleep for
one. The bar is 1 ms a request, decoding apart. See docs/server_cost.md.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from xinfer_ros.msg import FleetStatus
from xinfer_ros.ros.node_list import SERVER_NAME, SERVER_NAMESPACE, NodeSpec
from xinfer_ros.ros.process_group import ProcessGroup
from xinfer_ros.ros.spun_node import SpunNode

BAR_MS = 1.0
SHOWN_MS = 0.002
WARM_UP_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a thread has used since it began: CPU [ns], and how often it waited."""

    cpu_ns: int
    waits: int


class Reading:
    """
    The threads of the server at the moment of a status.

    :param status: msg/FleetStatus.msg
    :param pids: of the server node and its engines
    """

    def __init__(self, status: FleetStatus, pids: list[int]) -> None:
        self.requests = status.requests
        self.threads: dict[tuple[str, str], Usage] = {}
        for pid in pids:
            place = 'engine' if pid != pids[0] else 'server node'
            for task in Path(f'/proc/{pid}/task').iterdir():
                self._add(place, task)

    def _add(self, place: str, task: Path) -> None:
        name = (task / 'comm').read_text().strip()
        waits = next(
            int(line.split()[1])
            for line in (task / 'status').read_text().splitlines()
            if line.startswith('voluntary')
        )
        before = self.threads.get((place, name), Usage(cpu_ns=0, waits=0))
        self.threads[place, name] = Usage(
            cpu_ns=before.cpu_ns + int((task / 'schedstat').read_text().split()[0]),
            waits=before.waits + waits,
        )


def print_table(first: Reading, last: Reading) -> None:
    """Print what every thread has used between two readings, a request."""
    requests = last.requests - first.requests
    print(f'{requests} requests\n{"process":12} {"thread":16} {"ms/request":>10} {"waits":>6}')
    total, decoding = 0.0, 0.0
    for (place, name), now in sorted(last.threads.items(), key=lambda item: -item[1].cpu_ns):
        before = first.threads.get((place, name), Usage(cpu_ns=0, waits=0))
        ms = (now.cpu_ns - before.cpu_ns) / 1e6 / requests
        total += ms
        decoding += ms if name == 'decode' else 0.0
        if ms >= SHOWN_MS:
            waits = (now.waits - before.waits) / requests
            print(f'{place:12} {name:16} {ms:10.3f} {waits:6.2f}')
    verdict = 'within' if total - decoding <= BAR_MS else 'ABOVE'
    print(f'decoding {decoding:.3f}, all else {total - decoding:.3f} ms/request: ', end='')
    print(f'{verdict} the bar of {BAR_MS:g}')


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--robots', type=int, default=32)
    parser.add_argument('--x-ms', type=float, default=0.0, help='model time')
    parser.add_argument('--images', choices=('jpeg', 'raw'), default='jpeg')
    parser.add_argument('--duration', type=float, default=12.0)
    arguments = parser.parse_args()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 101))
    server = NodeSpec(
        executable='server',
        name=SERVER_NAME,
        namespace=SERVER_NAMESPACE,
        parameters={
            'model': f'fixed:{arguments.x_ms:g}',
            'admission': 'none',
            'spare_engine': False,
            'http_port': 0,
        },
    )
    command = [
        sys.executable, '-m', 'xinfer_ros.cli', 'bench', '--attach',
        '--robots', str(arguments.robots), '--images', arguments.images,
        '--duration', str(arguments.duration), '--warm-up', str(WARM_UP_S),
    ]  # fmt: skip
    statuses: list[FleetStatus] = []
    processes = ProcessGroup([server], lambda line: None)
    spun = SpunNode('server_cost')
    try:
        spun.listen(FleetStatus, f'{SERVER_NAMESPACE}/fleet_status', statuses.append, 1)
        spun.run()
        bench = subprocess.Popen(command)
        readings: list[Reading] = []
        while bench.poll() is None:
            time.sleep(0.02)
            while statuses:
                status = statuses.pop(0)
                busy = sum(robot.responses_hz > 0 for robot in status.robots)
                if busy >= arguments.robots:
                    pid = processes.pid('server')
                    children = psutil.Process(pid).children()
                    readings.append(Reading(status, [pid, *(child.pid for child in children)]))
        # the first seconds are its warm-up, in the last ones robots have begun to leave
        print_table(readings[2], readings[-2])
    finally:
        spun.close()
        processes.close()


if __name__ == '__main__':
    main()
