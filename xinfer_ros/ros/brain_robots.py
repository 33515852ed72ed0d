# SPDX-License-Identifier: Apache-2.0
"""The topics of robots that have a brain: signs of life, task, and how the brain fares."""

import re
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Empty, String

from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.msg import BrainState, ExecutorState
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import to_report

NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*')


def name_fault(robot_id: str) -> str:
    """Return why a robot can't have this id, empty if it can."""
    if NAME.fullmatch(robot_id):
        return ''
    return f'robot_id is {robot_id!r}; allowed: the namespace of a robot without the first slash'


class BrainRobot:
    """
    One robot, in its namespace.

    :param node: the brain node
    :param robot_id: namespace without the first slash
    :param alive: called at each sign of life
    """

    def __init__(self, node: Node, robot_id: str, alive: Callable[[str], None]) -> None:
        self.robot_id, self._alive = robot_id, alive
        space = f'/{robot_id}'
        self._states = node.create_publisher(BrainState, f'{space}/brain_state', qos.STATE)
        self._tasks = node.create_publisher(String, f'{space}/task', qos.STATE)
        node.create_subscription(
            ExecutorState, f'{space}/executor_state', self._on_report, qos.CHUNK
        )
        node.create_subscription(Empty, f'{space}/brain_heartbeat', self._on_life, 10)
        node.create_subscription(String, f'{space}/task', self._on_task, qos.EVENT)
        self._listeners: list[Callable[[RobotReport], None]] = []
        self.task = ''

    def listen(self, listener: Callable[[RobotReport], None]) -> Callable[[], None]:
        """Call somebody with each report of the executor; return what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def show(self, state: BrainState) -> None:
        """Publish how the brain fares."""
        self._states.publish(state)

    def set_task(self, task: str) -> None:
        """Give the robot a task."""
        self.task = task
        self._tasks.publish(String(data=task))

    def _on_report(self, message: Any) -> None:
        self._alive(self.robot_id)
        for listener in list(self._listeners):
            listener(to_report(message))

    def _on_life(self, message: Any) -> None:
        self._alive(self.robot_id)

    def _on_task(self, message: Any) -> None:
        self.task = message.data


class BrainRobots:
    """
    The robots that the brain node has to do with, made when they are needed.

    :param node: the brain node
    :param alive: called with a robot at each sign of its life
    """

    def __init__(self, node: Node, alive: Callable[[str], None]) -> None:
        self._node, self._alive = node, alive
        self._robots: dict[str, BrainRobot] = {}

    def __getitem__(self, robot_id: str) -> BrainRobot:
        """Return a robot by its id, which must be a name that ROS allows."""
        if robot_id not in self._robots:
            self._robots[robot_id] = BrainRobot(self._node, robot_id, self._alive)
        return self._robots[robot_id]
