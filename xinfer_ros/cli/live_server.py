# SPDX-License-Identifier: Apache-2.0
"""Our server as a system under load: started here, or one that runs already."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_system import BenchFailedError
from xinfer_ros.robot.load_plan import Images
from xinfer_ros.ros.node_list import NodeSpec
from xinfer_ros.ros.process_group import ProcessGroup, command

if TYPE_CHECKING:
    from xinfer_ros.ros.monitor import Monitor

LOOK_S = 0.1
ALONE_NS = 1_500_000_000  # in which a server that runs already is heard


class LiveServer:
    """
    The server node and its engine process, driven over ROS 2.

    :param spec: the server to start, None to take the one that runs
    :param files: parameter files of the robots
    :param images: how pictures are sent
    :param timeout_s: time for the server to be ready [s]
    :param clock: the steady clock
    :param output: takes what it says
    """

    name = 'ours'

    def __init__(
        self,
        spec: NodeSpec | None,
        files: tuple[Path, ...],
        images: Images,
        timeout_s: float,
        clock: Clock,
        output: Callable[[str], None],
    ) -> None:
        self._spec = None if spec is None else replace(spec, respawn=False)
        self._files, self.images, self._timeout_s = files, images, timeout_s
        self._clock, self._output = clock, output
        self._processes: ProcessGroup | None = None
        self._monitor: Monitor | None = None

    def start(self) -> None:
        """
        Start the server, or find it, and wait until it is ready.

        :raises BenchFailedError: if it is not, in time
        :raises ConfigError: if it is to be started beside another one
        """
        from xinfer_ros.ros.monitor import Monitor  # and rclpy, once every argument is checked

        self._monitor = monitor = Monitor([])
        if self._spec is not None:
            self._refuse_second(monitor)
            self._processes = ProcessGroup([self._spec], self._output)
        end_ns = self._clock.now_ns() + round(self._timeout_s * 1e9)
        while not monitor.server_is_ready:
            if failure := self.check():
                raise BenchFailedError(failure)
            if self._clock.now_ns() > end_ns:
                hint = '' if self._spec else '; does it run, with the same ROS_DOMAIN_ID?'
                raise BenchFailedError(f'no server is ready after {self._timeout_s:g} s{hint}')
            monitor.wait_for_news(LOOK_S)

    def _refuse_second(self, monitor: 'Monitor') -> None:
        end_ns = self._clock.now_ns() + ALONE_NS
        while self._clock.now_ns() < end_ns:
            if monitor.server_is_there:
                raise ConfigError(
                    'a server runs in this ROS domain already, and its robots would hear both: '
                    '--attach measures it, another ROS_DOMAIN_ID leaves it alone'
                )
            monitor.wait_for_news(LOOK_S)

    def pids(self) -> tuple[int, ...]:
        """Return the process of the server, whose engine is its child; none on another machine."""
        if self._processes is not None:
            return (self._processes.pid('server'),)
        engine = self._monitor.engine_pid if self._monitor is not None else 0
        try:
            process = psutil.Process(engine)
            is_ours = engine > 0 and 'xinfer' in ' '.join(process.cmdline())
            return (process.ppid(),) if is_ours else ()
        except psutil.Error:
            return ()

    def load_command(self, plan: Path) -> list[str]:
        """Return the command line of a process of emulated robots."""
        arguments = ('--plan', str(plan))
        return command(NodeSpec(executable='emulated', arguments=arguments, files=self._files))

    def check(self) -> str | None:
        """Return what is wrong if a process has ended."""
        return None if self._processes is None else self._processes.check()

    def close(self) -> None:
        """End it if it was started here."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        if self._processes is not None:
            self._processes.close()
            self._processes = None
