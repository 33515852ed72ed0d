# SPDX-License-Identifier: Apache-2.0
"""Peers as systems of the benchmark, each a process with robots that drive it."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.fleet.bench_run import BenchRun
from xinfer_ros.fleet.peers.peer_links import OpenpiLink
from xinfer_ros.fleet.peers.systems import PeerSystem, peer_systems
from xinfer_ros.sim.workload import make_workload

EPISODES = Path(__file__).parents[3] / 'episodes'


@pytest.mark.slow
@pytest.mark.parametrize('name', ['openpi', 'floor'])
def test_robots_of_the_benchmark_drive_a_peer(name: str) -> None:
    """The numbers of the record are those that issue and report name; none is judged here."""
    plan = BenchPlan(
        robots=(3,),
        seeds=(1,),
        period_ns=2_000_000_000,  # a tenth of it is how late the robots may be
        workload=make_workload('parcel'),
        warm_up_s=0.0,
        duration_s=2.5,
        episodes=('transfer_cube_0',),
        keeps_pace=True,
        robots_per_process=2,
        max_lateness_ms=1e6,
    )
    system = PeerSystem(name, 1.0, EPISODES)
    system.start()
    try:
        pid = system.pids()[0]
        run = BenchRun(plan, 1.0, 7, {}, MonotonicClock(), lambda text: None)
        record = run.measure(system, 3, 1, lambda text: None).record
        assert system.check() is None
    finally:
        system.close()
    assert not psutil.pid_exists(pid)
    assert (record.system, record.robots, record.x_ms, record.images) == (name, 3, 1.0, 'raw')
    assert (record.wrong, record.unanswered, record.refused) == (0, 0, 0)
    assert record.requests >= 3
    assert 1.0 <= record.p50_ms <= record.p95_ms <= record.p99_ms
    assert record.server_cpu_ms_per_request is not None
    assert record.server_cpu_ms_per_request >= 0.0  # the system counts hundredths of a second


def test_a_peer_that_ends_is_noticed() -> None:
    system = PeerSystem('floor', 0.0, EPISODES)
    assert system.pids() == ()
    system.start()
    try:
        pid = system.pids()[0]
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # and leave it to its owner
        assert system.check() == 'its server ended with exit code -9'
    finally:
        system.close()


def test_a_peer_outlives_robots_that_leave_without_a_goodbye() -> None:
    """What it says of each once filled its pipe, and it stood still in the third fleet of 32."""
    system = PeerSystem('openpi', 0.0, EPISODES)
    system.start()
    try:
        words = system.load_command(Path('plan'))
        port = int(words[words.index('--port') + 1])
        for _ in range(5):
            asyncio.run(_come_and_go(port, 32))
        assert system.check() is None
    finally:
        system.close()


async def _come_and_go(port: int, robots: int) -> None:
    """Connect, hear the metadata, and drop the connection."""
    loop = asyncio.get_running_loop()
    for _ in range(robots):
        transport, link = await loop.create_connection(
            lambda: OpenpiLink(port, lambda mark: None), '127.0.0.1', port
        )
        await link.ready
        transport.abort()


def test_a_peer_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match='peer lerobot; there are openpi, floor'):
        peer_systems(['floor', 'lerobot'], 0.0, EPISODES)
