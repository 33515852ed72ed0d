# SPDX-License-Identifier: Apache-2.0
"""Peers as systems of the benchmark: a server process, and what drives it."""

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_system import BenchFailedError, BenchSystem
from xinfer_ros.fleet.peers.peer_server import PORT
from xinfer_ros.robot.load_plan import Images

START_S, END_S = 60.0, 5.0
_PACKAGE = 'xinfer_ros.fleet.peers'
_SERVERS = {'openpi': f'{_PACKAGE}.openpi_server', 'floor': f'{_PACKAGE}.floor_server'}


class PeerSystem:
    """
    A peer, beginning with ``start``.

    :param name: openpi or floor
    :param x_ms: model time of each request [ms]
    :param shipped: folder of the shipped episodes
    """

    images: Images = 'raw'

    def __init__(self, name: str, x_ms: float, shipped: Path) -> None:
        self.name = name
        self._x_ms, self._shipped = x_ms, shipped
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self._ports: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._last = 'without a word'

    def start(self) -> None:
        """
        Start its process and wait until it listens.

        :raises BenchFailedError: if it ends instead
        """
        self._process = process = subprocess.Popen(
            [sys.executable, '-m', _SERVERS[self.name], '--x-ms', str(self._x_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        # read to its end: a process whose pipe is full stands still
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()
        try:
            port = self._ports.get(timeout=START_S)
        except queue.Empty:
            raise BenchFailedError(f'its server does not listen after {START_S:g} s') from None
        if port is None:
            raise BenchFailedError(f'its server did not start: {self._last}')
        self._port = port

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            word, _, port = line.strip().partition(' ')
            if word == PORT:
                self._ports.put(int(port))
            else:
                self._last = line.strip()
        self._ports.put(None)
        stream.close()

    def pids(self) -> tuple[int, ...]:
        """Return its process."""
        return () if self._process is None else (self._process.pid,)

    def load_command(self, plan: Path) -> list[str]:
        """Return the command line of a process that plays a plan to it."""
        return [
            *(sys.executable, '-m', f'{_PACKAGE}.load_main'),
            *('--plan', str(plan), '--system', self.name, '--port', str(self._port)),
            *('--shipped', str(self._shipped)),
        ]

    def check(self) -> str | None:
        """Return what is wrong if it has ended, None otherwise."""
        code = None if self._process is None else self._process.poll()
        return None if code is None else f'its server ended with exit code {code}'

    def close(self) -> None:
        """End it: it ends with its stdin."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def peer_systems(names: Sequence[str], x_ms: float, shipped: Path) -> list[BenchSystem]:
    """
    Return peers by their names.

    :param x_ms: model time of each request [ms]
    :param shipped: folder of the shipped episodes
    :raises ConfigError: if a name is none of a peer
    """
    unknown = [name for name in names if name not in _SERVERS]
    if unknown:
        raise ConfigError(f'peer {", ".join(unknown)}; there are {", ".join(_SERVERS)}')
    return [PeerSystem(name, x_ms, shipped) for name in names]
