# SPDX-License-Identifier: Apache-2.0
"""
What an executor costs, and how evenly it ticks beside a loaded server.

Run: ``.venv/bin/python benchmarks/executor.py``. A replay in a process of its own plays the
sensors, three cameras and joint states; the executor runs as on a robot. The bars are an overhead
of 5 % of a core at 30 Hz, and a control period that is off by at most 2 ms in 99 of 100 ticks
beside a loaded server on the same machine. Periods are those of the instants at which commands
are written. Overhead is what the executor takes beyond the floor: a process that has the same
sensors delivered by the middleware and does nothing with them.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 101))

import numpy as np
import psutil
import rclpy
from sensor_msgs.msg import CompressedImage, JointState
from trajectory_msgs.msg import JointTrajectory

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.ros import qos
from xinfer_ros.ros.node_list import SERVER_NAME, SERVER_NAMESPACE, NodeSpec
from xinfer_ros.ros.process_group import ProcessGroup

SPACING_S = 1 / 30
BAG = 'transfer_cube_0'
ROBOTS_A_PROCESS = 4
START_S, WARM_UP_S = 60.0, 3.0
LAST_LINES = 20  # of what the processes said, if something fails
MOST_CPU, MOST_JITTER_MS = 5.0, 2.0
# an episode begins without commands, and a period that spans it would tell nothing
ONE_EPISODE = ('--ros-args', '-r', 'episode:=unheard', '--')


def measured_robot(*, real_time: bool) -> list[NodeSpec]:
    """Return the executor that is measured, and what plays its sensors."""
    settings = {'keyframe_spacing_s': SPACING_S, 'real_time': real_time}
    return [
        NodeSpec(
            executable='replay',
            name='replay',
            namespace='/m',
            arguments=ONE_EPISODE,
            parameters={'bag': BAG},
        ),
        NodeSpec(executable='executor', name='executor', namespace='/m', parameters=settings),
    ]


def receive_only(namespace: str) -> None:
    """Have the sensors of a robot delivered, and do nothing, until SIGTERM."""
    rclpy.init()
    node = rclpy.create_node('floor', namespace=namespace, start_parameter_services=False)
    config = ExecutorConfig()
    kept = [
        node.create_subscription(CompressedImage, topic, lambda _: None, qos.SENSOR)
        for topic in config.topic_by_camera().values()
    ]
    kept.append(
        node.create_subscription(JointState, config.joint_state_topic, lambda _: None, qos.JOINTS)
    )
    signal.sigwait({signal.SIGTERM})


def floor(seconds: float) -> float:
    """Return the share of a core that it takes to have the sensors delivered."""
    replay = measured_robot(real_time=False)[0]
    group = ProcessGroup([replay], lambda _: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # inherited; the child waits for it
    receiver = subprocess.Popen([sys.executable, __file__, '--receive-only', replay.namespace])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        time.sleep(WARM_UP_S + WARM_UP_S)
        begun_s, used_s = time.monotonic(), cpu_s(receiver.pid)
        time.sleep(seconds)
        return (cpu_s(receiver.pid) - used_s) / (time.monotonic() - begun_s)
    finally:
        receiver.terminate()
        receiver.wait(10)
        group.close()


def server(model: str) -> NodeSpec:
    """Return a server that takes everybody."""
    return NodeSpec(
        executable='server',
        name=SERVER_NAME,
        namespace=SERVER_NAMESPACE,
        parameters={'model': model, 'admission': 'none', 'rclpy_executor': 'events'},
    )


def load(num_robots: int) -> list[NodeSpec]:
    """Return robots that keep the server busy."""
    specs = []
    for first in range(0, num_robots, ROBOTS_A_PROCESS):
        robots = range(first, min(first + ROBOTS_A_PROCESS, num_robots))
        arguments = [part for r in robots for part in ('--robot', f'r{r}={BAG}@{2.7 * r:.1f}')]
        specs.append(
            NodeSpec(
                executable='robots',
                arguments=tuple(arguments),
                parameters={'rclpy_executor': 'events'},
            )
        )
    return specs


class Commands:
    """Keeps the instants at which the executor has written its commands."""

    def __init__(self) -> None:
        self._node = rclpy.create_node('commands', start_parameter_services=False)
        self._subscription = self._node.create_subscription(
            JointTrajectory, '/m/joint_trajectory', self._take, 100
        )
        self.written_ns: list[int] = []

    def _take(self, message: JointTrajectory, info: dict[str, int]) -> None:
        self.written_ns.append(info['source_timestamp'])

    def listen(self, seconds: float) -> None:
        """Take commands for a while."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            rclpy.spin_once(self._node, timeout_sec=0.1)

    def wait(self) -> None:
        """Wait until the robot is commanded, then until it has run in."""
        end_s = time.monotonic() + START_S
        while len(self.written_ns) < 1 / SPACING_S:
            if time.monotonic() > end_s:
                raise SystemExit('the robot is not commanded; see above')
            self.listen(0.2)
        self.listen(WARM_UP_S)
        self.written_ns.clear()

    def close(self) -> None:
        """Leave the graph."""
        self._node.destroy_node()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far [s]."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def run(specs: Sequence[NodeSpec], seconds: float) -> tuple[float, np.ndarray]:
    """
    Run processes for a while.

    :returns: share of a core that the executor took, and its periods less the spacing [ms]
    """
    said: list[str] = []
    group = ProcessGroup(specs, said.append)
    commands = Commands()
    try:
        commands.wait()
        pid = group.pid('executor')
        begun_s, used_s = time.monotonic(), cpu_s(pid)
        commands.listen(seconds)
        share = (cpu_s(pid) - used_s) / (time.monotonic() - begun_s)
        if trouble := group.check():
            raise SystemExit(trouble)
    except SystemExit:
        print('\n'.join(said[-LAST_LINES:]))
        raise
    finally:
        commands.close()
        group.close()
    return share, np.diff(commands.written_ns) / 1e6 - SPACING_S * 1e3


def verdict(value: float, most: float) -> str:
    """Return whether a value keeps to its bar."""
    return f'bar {most:g}: {"kept" if value <= most else "BROKEN"}'


def main() -> None:
    """Measure both, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=30.0, help='of each measurement')
    parser.add_argument('--robots', type=int, default=8, help='robots that load the server')
    parser.add_argument('--model', default='tiny', help='model of the loaded server')
    parser.add_argument('--ordinary', action='store_true', help='without real-time priority')
    parser.add_argument('--receive-only', metavar='NAMESPACE', help='be the floor')
    given = parser.parse_args()
    if given.receive_only:
        receive_only(given.receive_only)
        return
    rclpy.init()
    least = floor(given.seconds)
    robot = measured_robot(real_time=not given.ordinary)
    share, _ = run([server('echo'), *robot], given.seconds)
    over = 100 * (share - least)
    print(
        f'alone: {100 * share:.2f} % of a core, floor {100 * least:.2f} %, overhead {over:.2f} %; '
        f'{verdict(over, MOST_CPU)}'
    )
    specs = [server(given.model), *load(given.robots), *robot]
    share, off_ms = run(specs, given.seconds)
    p50, p99, most = np.percentile(np.abs(off_ms), [50, 99, 100])
    print(
        f'beside {given.model} and {given.robots} robots: {len(off_ms)} periods off by P50 '
        f'{p50:.3f} ms, P99 {p99:.3f} ms, at most {most:.3f} ms; {verdict(p99, MOST_JITTER_MS)}; '
        f'{100 * share:.2f} % of a core'
    )
    rclpy.shutdown()


if __name__ == '__main__':
    main()
