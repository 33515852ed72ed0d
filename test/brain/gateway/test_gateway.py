# SPDX-License-Identifier: Apache-2.0
"""A gateway, its process and its connections."""

import asyncio
import resource
import socket

from aiohttp import web

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Gauges
from xinfer_ros.brain.controllers.open import Open
from xinfer_ros.brain.gateway.gateway import Gateway, allow_many_files, notice_death
from xinfer_ros.config import BrainConfig

from .stub import Stub
from .virtual_time import VirtualLoop, run_virtually


class _Breaking(EpisodeAdmission):
    """Takes the first look at metrics, and fails at the next."""

    looks = 0

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Fail, the second time."""
        self.looks += 1
        if self.looks > 1:
            raise ValueError('nobody expected this')


async def _nothing(request: web.Request) -> web.Response:
    return web.Response(status=404)


def test_whoever_runs_the_gateway_hears_that_its_housekeeping_has_failed() -> None:
    """Whatever part of it fails: leases would never end, and dead servers never be found."""

    async def work(loop: VirtualLoop) -> None:
        stub, failed = Stub(_nothing), asyncio.Event()
        await stub.start()
        config = BrainConfig(port=0, upstreams=(stub.url,))
        gateway = Gateway(config, loop, lambda: _Breaking(Open(), None), failed.set)
        await gateway.start()
        assert not failed.is_set()
        await loop.lives(3.0)
        assert failed.is_set()
        await gateway.close()
        await stub.close()

    run_virtually(work)


def test_a_robot_that_loses_its_power_is_noticed_within_a_minute() -> None:
    """TCP asks an idle peer after two hours, and gives up one with data after a quarter of one."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        agent = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        with agent, connection:
            notice_death(connection)
            idle, interval, count, pending_ms = (
                connection.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_USER_TIMEOUT,
                )
            )
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert idle + interval * count <= 60
            assert pending_ms <= 60_000


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
