# SPDX-License-Identifier: Apache-2.0
"""A ROS graph for a test: node processes beside a node of the test itself."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from xinfer_ros.robot.session import ANSWER_TIMEOUT_NS

START_S = 30.0
COMMAND_S = 110.0


class NodeProcess:
    """
    A node process with its output.

    :param module: such as ``server_main``
    :param arguments: command line
    :param env: environment
    """

    def __init__(self, module: str, arguments: list[str], env: dict[str, str]) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, '-m', f'xinfer_ros.ros.{module}', *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    @property
    def output(self) -> str:
        """Return everything written so far."""
        return '\n'.join(self.lines)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._reader.join()
        return code


class Graph:
    """
    One domain with its processes, and a node of the test that is spun in ``until``.

    :param domain: ROS_DOMAIN_ID
    """

    def __init__(self, domain: int) -> None:
        self.env = dict(
            os.environ,
            ROS_DOMAIN_ID=str(domain),
            ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST',
            PYTHONUNBUFFERED='1',
        )
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = Node('test', context=self._context, start_parameter_services=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._processes: list[NodeProcess] = []

    def run(self, module: str, *arguments: str) -> NodeProcess:
        """Start a node process."""
        process = NodeProcess(module, list(arguments), self.env)
        self._processes.append(process)
        return process

    def server(self, *parameters: str) -> NodeProcess:
        """Start a server of the echo model, which needs no torch, and has no page unless told."""
        given = ['-p', 'model:=echo', '-p', 'lease_s:=2.0', '-p', 'http_port:=0', *parameters]
        return self.run('server_main', '--ros-args', *given)

    def command(self, *arguments: str) -> 'subprocess.CompletedProcess[str]':
        """Run ``xinfer`` to its end on this domain, while the test's node spins."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(
                subprocess.run,
                [sys.executable, '-m', 'xinfer_ros.cli', *arguments],
                env=self.env,
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=False,
            )
            self.until(done.done, f'xinfer {" ".join(arguments)} ends', 2 * COMMAND_S)
        return done.result()

    def until(self, condition: Callable[[], Any], what: str, within_s: float = START_S) -> None:
        """Spin the test's node until a condition holds; fail when it takes too long."""
        end_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > end_s:
                words = '\n'.join(process.output for process in self._processes)
                raise AssertionError(f'not within {within_s} s: {what}\n{words}'[-4000:])
            self._executor.spin_once(timeout_sec=0.05)

    def be_known(self, node: str) -> None:
        """
        Wait until a node will answer the clients that the test's node has by now.

        ROS drops the answer of a service whose client it has not matched yet. Clients are
        announced in the order in which they are made: if the last one is answered, all are known.
        """
        client = self.node.create_client(GetParameters, f'{node}/get_parameters')
        self.ask(client, GetParameters.Request())
        self.node.destroy_client(client)

    def ask(self, client: Any, request: Any) -> Any:
        """
        Return the answer to a request that may be repeated.

        It is repeated after a while, as robots do, since ROS may drop the answer: ``be_known``.
        """
        self.until(client.service_is_ready, f'{client.srv_name} is offered')
        asked: list[tuple[Any, float]] = []

        def is_answered() -> bool:
            if not asked or self.now_s() - asked[-1][1] > ANSWER_TIMEOUT_NS / 1e9:
                asked.append((client.call_async(request), self.now_s()))
            return any(future.done() for future, _ in asked)

        self.until(is_answered, f'{client.srv_name} answers')
        return next(future for future, _ in asked if future.done()).result()

    def transition(self, *numbers: int, node: str = '/fleet/xinfer_server') -> None:
        """Bring a managed node through transitions, one after the other."""
        client = self.node.create_client(ChangeState, f'{node}/change_state')
        self.until(client.service_is_ready, f'{node} is managed')
        self.be_known(node)
        for number in numbers:
            future = client.call_async(ChangeState.Request(transition=Transition(id=number)))
            self.until(future.done, f'transition {number} ends')
            assert future.result().success

    def now_s(self) -> float:
        """Return the time of the steady clock [s]."""
        return time.monotonic()

    def spin(self, seconds: float) -> None:
        """Let the graph live for a while."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        """End everything."""
        for process in self._processes:
            if process.process.poll() is None:
                process.process.terminate()
        for process in self._processes:
            try:
                process.process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)


EPISODES = Path(__file__).parents[2] / 'episodes'
