# SPDX-License-Identifier: Apache-2.0
"""The topics of robots that have a brain: signs of life, task, and how the brain fares."""

import logging
import re
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Empty, String

from xinfer_ros.brain.skill import RobotTask
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.msg import BrainState, ExecutorState
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import to_report

NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*')
MOST_CHARACTERS = 100  # of an id: with more, topics and episodes could not be named after it
STATE_TOPIC = '/brain_state'
STATE_TYPE = 'xinfer_ros/msg/BrainState'

log = logging.getLogger(__name__)


def name_fault(robot_id: str) -> str:
    """Return why a robot can't have this id, empty if it can."""
    if len(robot_id) <= MOST_CHARACTERS and NAME.fullmatch(robot_id):
        return ''
    return (
        f'robot_id is {robot_id[: 2 * MOST_CHARACTERS]!r}; allowed: the namespace of a robot '
        f'without the first slash, of at most {MOST_CHARACTERS} characters'
    )


class BrainRobot:
    """
    One robot, in its namespace; it is told at once that it has no episode.

    :param node: the brain node
    :param robot_id: namespace without the first slash
    """

    def __init__(self, node: Node, robot_id: str) -> None:
        self._node, self._space, self.robot_id = node, f'/{robot_id}', robot_id
        self._states = node.create_publisher(BrainState, self._space + STATE_TOPIC, qos.STATE)
        self._tasks: Any = None
        self._task = RobotTask()
        self._is_heard = False
        self._listeners: list[Callable[[RobotReport], None]] = []
        self._lives: list[Callable[[bool], None]] = []
        self.show(BrainState(robot_id=robot_id, estimate_ns=-1))

    @property
    def task(self) -> str:
        """Return the task that the robot was given last, by anybody."""
        return self._task.name

    def listen(self, listener: Callable[[RobotReport], None]) -> Callable[[], None]:
        """Call somebody with each report of the executor; return what ends it."""
        self._hear()
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def feel(self, life: Callable[[bool], None]) -> Callable[[], None]:
        """
        Call somebody at each sign of life; return what ends it.

        :param life: called with whether it is a heartbeat, and not a mere report of the executor
        """
        self._hear()
        self._lives.append(life)
        return lambda: self._lives.remove(life)

    def _hear(self) -> None:
        if self._is_heard:
            return
        self._is_heard = True
        for kind, topic, callback, profile in (
            (ExecutorState, 'executor_state', self._on_report, qos.CHUNK),
            (Empty, 'brain_heartbeat', self._on_heartbeat, 10),
            (String, 'task', self._on_task, qos.EVENT),
        ):
            self._node.create_subscription(kind, f'{self._space}/{topic}', callback, profile)

    def show(self, state: BrainState) -> None:
        """Publish how the brain fares."""
        self._states.publish(state)

    def set_task(self, task: str) -> None:
        """Give the robot a task, which an executor that starts later gets too."""
        self._hear()
        if self._tasks is None:
            self._tasks = self._node.create_publisher(String, f'{self._space}/task', qos.STATE)
        self._task.given(task)
        self._tasks.publish(String(data=task))

    def withdraw_task(self) -> None:
        """Let no executor that starts later get the task that was given last."""
        if self._tasks is not None:
            self._node.destroy_publisher(self._tasks)
            self._tasks = None

    def _on_report(self, message: Any) -> None:
        self._live(is_heartbeat=False)
        try:
            report = to_report(message)
        except ValueError as error:
            log.warning('a report of %s is not understood: %s', self.robot_id, error)
            return
        for listener in list(self._listeners):
            listener(report)

    def _on_heartbeat(self, message: Any) -> None:
        self._live(is_heartbeat=True)

    def _live(self, *, is_heartbeat: bool) -> None:
        for life in list(self._lives):
            life(is_heartbeat)

    def _on_task(self, message: Any) -> None:
        if self._task.heard(message.data):
            self.withdraw_task()


class BrainRobots:
    """
    The robots that the brain node has to do with, made when they are needed.

    :param node: the brain node
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._robots: dict[str, BrainRobot] = {}

    def __getitem__(self, robot_id: str) -> BrainRobot:
        """Return a robot by its id, which must be a name that ROS allows."""
        if robot_id not in self._robots:
            self._robots[robot_id] = BrainRobot(self._node, robot_id)
        return self._robots[robot_id]

    def has(self, robot_id: str) -> bool:
        """Return whether there is such a robot: it was asked for, or it listens to its brain."""
        if robot_id in self._robots:
            return True
        topic = f'/{robot_id}{STATE_TOPIC}'
        return not name_fault(robot_id) and self._node.count_subscribers(topic) > 0

    def free(self) -> None:
        """
        Tell robots whose brain node is gone that they have no episode.

        A brain node that was killed could not tell them, and they would wait for it.
        """
        for topic, kinds in self._node.get_topic_names_and_types():
            robot_id = topic.removesuffix(STATE_TOPIC).removeprefix('/')
            if STATE_TYPE not in kinds or robot_id in self._robots or name_fault(robot_id):
                continue
            if self._node.count_subscribers(topic) and not self._node.count_publishers(topic):
                self._robots[robot_id] = BrainRobot(self._node, robot_id)
