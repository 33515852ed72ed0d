# SPDX-License-Identifier: Apache-2.0
"""Everything of an executor node that lives from its configuration to its clean-up."""

from collections.abc import Callable

from rclpy.node import Node

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Rejected
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.command_source import CommandSource
from xinfer_ros.robot.control_loop import TickRate
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.hold import Hold
from xinfer_ros.robot.watchdog import ChunkWatchdog
from xinfer_ros.ros.brain_watch import BrainWatch
from xinfer_ros.ros.command import CommandPublisher
from xinfer_ros.ros.entities import Entities
from xinfer_ros.ros.executor_reporter import ExecutorReporter
from xinfer_ros.ros.node_time import NodeTime
from xinfer_ros.ros.registrar import Registrar
from xinfer_ros.ros.robot_description import RobotDescription
from xinfer_ros.ros.sensors import Sensors
from xinfer_ros.ros.server_link import ServerLink
from xinfer_ros.ros.task_topics import TaskTopics

IDLE_NS = 100_000_000  # between two looks while there is nothing to command


class ExecutorBody:
    """
    Joins sensors, executor, commands and the server; ``tick`` belongs to the control thread.

    :param node: the executor node
    :param config: its settings
    :param robot_id: id in the fleet
    :param instance: tells this process from another one that claims the same id
    :param clock: the steady clock
    :param moved: called when simulated time has moved
    :raises ConfigError: if a setting does not fit the robot
    """

    def __init__(
        self,
        node: Node,
        config: ExecutorConfig,
        robot_id: str,
        instance: int,
        clock: Clock,
        moved: Callable[[], None],
    ) -> None:
        self._config, self._robot_id = config, robot_id
        self._entities = entities = Entities(node)
        try:
            self._time = NodeTime(node, moved)
            entities.at_close(self._time.close)
            self._rate = TickRate(round(config.keyframe_spacing_s * 1e9))
            self._description = RobotDescription(entities, config)
            self._sensors = Sensors(node, config)
            entities.at_close(self._sensors.close)
            self._task = TaskTopics(entities, config)
            self._command = CommandPublisher(entities, config)
            registrar = Registrar(entities, config, robot_id, instance, clock)
            self._link = ServerLink(entities, config, registrar, clock, self._chunk_accepted)
            self._brain = BrainWatch(entities, config, clock)
            self._reporter = ExecutorReporter(
                entities, clock, self._link, self._sensors, self._brain
            )
            self._executor: ChunkExecutor | None = None
            self._source: CommandSource | None = None
            self._is_active = self._episode_begins = False
            if config.joint_names and not self._description.waits():
                self._make_executor(config.joint_names)
        except Exception:
            entities.close()
            raise

    def activate(self) -> None:
        """Begin an episode; commands may follow."""
        self._command.open()
        self._episode_begins = self._is_active = True

    def stop(self) -> None:
        """Publish the safe output, and command nothing until ``activate``; from any thread."""
        self._is_active = False
        source = self._source
        output = source.stop() if source is not None else None
        self._command.say(output, last=True)

    def flush(self, seconds: float) -> None:
        """Wait until the controllers have what was published, at most so long [s]."""
        self._command.flush(seconds)

    def stalled(self, late_ns: int) -> None:
        """Publish the safe output in place of a control thread that stalls; another thread."""
        source = self._source
        output = source.interrupt() if self._is_active and source is not None else None
        self._command.say(output, last=False)
        self._reporter.stalled(late_ns, is_safe=output is not None)

    def close(self) -> None:
        """Remove everything."""
        self._entities.close()

    def tick(self, steady_ns: int) -> int:
        """Command the row of this tick, then ask for the next chunk if it is time."""
        self._reporter.recovered()
        if not self._time.has_begun:
            self._reporter.notice = 'no time yet: use_sim_time is set, and nobody publishes /clock'
        if not self._is_active or not self._time.has_begun:
            self._rate.rest()
            return steady_ns + IDLE_NS
        now_ns = self._time.now_ns(steady_ns)
        if self._rate.is_due(now_ns):
            self._tick(steady_ns, self._rate.begin(now_ns))
        else:
            self._link.keep_registered(steady_ns)
        return self._time.look_again_ns(self._rate.due_ns, steady_ns)

    def _tick(self, now_ns: int, missed: int) -> None:
        self._sensors.poll(now_ns)
        executor, source = self._executor, self._source
        if executor is None or source is None:
            self._look_for_joints()
            return
        if self._task.take_beginning() or self._episode_begins:
            self._episode_begins = False
            source.begin_episode()
            self._sensors.forget()
            if not self._is_active:  # stopped in this moment, by another thread
                source.stop()
        if self._task.take_change():
            executor.supersede()
        trouble = self._sensors.trouble(executor.joint_names, now_ns)
        waits = self._brain.trouble(now_ns)
        self._command.publish(source.tick(now_ns, missed, trouble or waits))
        self._link.keep_registered(now_ns)
        if not waits:  # else nobody would play the rows
            self._ask(executor, now_ns if self._time.is_simulated else self._rate.instant_ns)

    def _look_for_joints(self) -> None:
        self._reporter.notice = self._description.waits() or 'waiting for the first joint state'
        names = self._config.joint_names or self._sensors.joint_names
        if names and not self._description.waits():
            self._make_executor(names)

    def _make_executor(self, names: tuple[str, ...]) -> None:
        config = self._config
        settings = ExecutorSettings.from_config(
            config, self._robot_id, names, self._description.limits
        )
        executor = ChunkExecutor(settings)
        source = CommandSource(
            executor,
            Hold.from_config(config, names, settings.limits),
            ChunkWatchdog(round(config.chunk_timeout_s * 1e9)),
            config.overrun_skip_steps,
        )
        self._command.bind(names)
        self._link.bind(executor)
        self._reporter.bind(executor, source)
        self._executor, self._source, self._episode_begins = executor, source, True

    def _ask(self, executor: ChunkExecutor, now_ns: int) -> None:
        if not executor.request_is_due(now_ns):
            return
        try:
            sensed, frames = self._sensors.read(executor.joint_names, now_ns)
        except Rejected as refusal:
            self._reporter.notice = refusal.detail
            return
        self._reporter.notice = ''
        self._link.send(executor, now_ns, sensed, frames, self._task.instruction)

    def _chunk_accepted(self, now_ns: int) -> None:
        if self._source is not None:
            self._source.chunk_accepted(now_ns)
