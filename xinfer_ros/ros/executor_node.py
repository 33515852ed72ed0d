# SPDX-License-Identifier: Apache-2.0
"""The executor node: the robot's side of the fleet, around a chunk executor."""

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ActionChunk, Budget, ExecutorState, Observation, ServerState
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.control_loop import TickRate
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.command import CommandPublisher
from xinfer_ros.ros.diagnostics import executor_diagnostics
from xinfer_ros.ros.parameters import as_overrides, declare, steady_clock
from xinfer_ros.ros.registrar import Registrar
from xinfer_ros.ros.sensors import Sensors
from xinfer_ros.ros.task_topics import TaskTopics

REPORT_S = 0.5


class ExecutorNode(Node):
    """
    Turns sensor topics into observations and chunks into commands.

    ``control_tick`` is called by the control loop, in its thread; rclpy's thread takes in answers.

    :param namespace: the robot's namespace
    :param config: settings
    """

    def __init__(self, namespace: str, config: ExecutorConfig, name: str = 'executor') -> None:
        overrides = as_overrides(config)
        super().__init__(name, namespace=namespace, parameter_overrides=overrides)
        declare(self, config)
        self._config, self._steady = config, MonotonicClock()
        self._robot_id = config.robot_id or namespace.strip('/').replace('/', '_')
        self._rate = TickRate(round(config.keyframe_spacing_s * 1e9))
        self._task = TaskTopics(self, config)
        self._notice = 'waiting for the first joint state'
        self._executor: ChunkExecutor | None = None
        self._sensors = Sensors(self, config)
        self._command = CommandPublisher(self, config)
        self._observation_pub = self.create_publisher(Observation, 'observation', qos.OBSERVATION)
        self._state_pub = self.create_publisher(ExecutorState, 'executor_state', qos.CHUNK)
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._registrar = Registrar(self, config, self._robot_id, self._steady)
        self.create_subscription(ActionChunk, 'action_chunk', self._on_chunk, qos.CHUNK)
        self.create_subscription(Budget, 'budget', self._on_budget, qos.BUDGET)
        state_topic = f'{config.server}/server_state'
        self.create_subscription(ServerState, state_topic, self._on_server_state, qos.STATE)
        self.create_timer(REPORT_S, self._publish_report, clock=steady_clock())

    def control_tick(self, now_ns: int) -> int:
        """Execute the row of this tick, then ask for the next chunk if it is time."""
        if self._task.take_beginning():
            self._start_episode()
        self._sensors.poll(now_ns)
        if self._executor is None:
            self._executor = self._make_executor()
        if self._executor is not None:
            self._command.publish(self._executor.tick())
            self._ask(self._executor, self._rate.instant(now_ns))
        return self._rate.following(now_ns)

    def _make_executor(self) -> ChunkExecutor | None:
        names = self._config.joint_names or self._sensors.joint_names
        if not names:
            return None
        self._command.joint_names = names
        return ChunkExecutor(ExecutorSettings.from_config(self._config, self._robot_id, names))

    def _ask(self, executor: ChunkExecutor, now_ns: int) -> None:
        self._registrar.ask_if_due(executor, now_ns)
        if not executor.request_is_due(now_ns):
            return
        joint_names = executor.joint_names
        try:
            state, frames = self._sensors.read(joint_names, now_ns)
        except Rejected as refusal:
            self._notice = refusal.detail
            return
        self._notice = ''
        draft = executor.begin_request(now_ns)
        if draft is None:
            return
        message = convert.from_draft(draft, joint_names, state, frames)
        message.stamp = self.get_clock().now().to_msg()
        message.instruction = self._task.instruction
        message.keyframe_spacing_ns = round(self._config.keyframe_spacing_s * 1e9)
        self._observation_pub.publish(message)

    def _on_chunk(self, message: Any) -> None:
        executor, now_ns = self._executor, self._steady.now_ns()
        if executor is None:
            return
        try:
            reason = executor.accept(convert.to_answer(message), now_ns)
        except Rejected as refusal:
            reason = executor.refuse(refusal)
        if reason is not Reason.OK:
            text = f'no new chunk: {reason.name}: {executor.last_refusal}'
            self.get_logger().warning(text, throttle_duration_sec=1.0)

    def _on_budget(self, message: Any) -> None:
        try:
            if self._executor is not None:
                self._executor.set_budget(message.budget_ns)
        except Rejected as refusal:
            self.get_logger().warning(f'budget of {message.source!r}: {refusal}')

    def _start_episode(self) -> None:
        """Forget the old episode: its rows, the command that is held, and what was seen in it."""
        self._command.forget()
        self._sensors.forget()
        if self._executor is not None:
            self._executor.start_episode()

    def _on_server_state(self, message: Any) -> None:
        if self._executor is not None:
            ready = message.state == ServerState.READY
            self._executor.session.server_announced(message.epoch, ready=ready)

    def destroy_node(self) -> None:
        """Remove the node and its helper."""
        self._sensors.close()
        super().destroy_node()

    def _publish_report(self) -> None:
        if self._executor is None:
            self.get_logger().warning(self._notice, throttle_duration_sec=5.0)
            return
        report = self._executor.report()
        self._state_pub.publish(convert.from_report(report))
        chunk_topic = f'{self.get_namespace()}/action_chunk'
        mismatched = self._sensors.mismatches() + qos.mismatches(self, chunk_topic, qos.CHUNK)
        notice = self._registrar.notice or self._notice
        self._diagnostics_pub.publish(executor_diagnostics(self, report, notice, mismatched))
