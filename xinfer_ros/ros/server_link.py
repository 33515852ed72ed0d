# SPDX-License-Identifier: Apache-2.0
"""The topics between an executor and its server."""

import os
from collections.abc import Callable
from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.repeats import RepeatLimit
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ActionChunk, Budget, Observation, ServerState
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.joint_translation import JointTranslation
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.entities import Entities
from xinfer_ros.ros.large_messages import SizeWarning, stays_on_this_host
from xinfer_ros.ros.registrar import Registrar


class ServerLink:
    """
    Sends observations and takes in what the server and a task planner say.

    Callbacks run in rclpy's thread, ``ask`` in the control thread.

    :param entities: makes the topics
    :param config: of the executor
    :param registrar: asks for a place in the fleet
    :param clock: the steady clock
    :param accepted: called with the time of each accepted chunk [ns]
    """

    def __init__(
        self,
        entities: Entities,
        config: ExecutorConfig,
        registrar: Registrar,
        clock: Clock,
        accepted: Callable[[int], None],
    ) -> None:
        self._config, self._clock, self._accepted = config, clock, accepted
        self._node, self._now = entities.node, entities.now
        self._registrar, self._repeats = registrar, RepeatLimit()
        self._size_warning = SizeWarning(is_local=stays_on_this_host(os.environ))
        self._executor: ChunkExecutor | None = None
        self._names = JointTranslation((), ())
        self._publisher = entities.create_publisher(Observation, 'observation', qos.OBSERVATION)
        state_topic = f'{config.server}/server_state'
        for kind, topic, callback, profile in (
            (ActionChunk, 'action_chunk', self._on_chunk, qos.CHUNK),
            (Budget, 'budget', self._on_budget, qos.BUDGET),
            (ServerState, state_topic, self._on_server_state, qos.STATE),
        ):
            entities.create_subscription(kind, topic, callback, profile)

    def bind(self, executor: ChunkExecutor) -> None:
        """Speak for an executor from now on."""
        self._names = JointTranslation(executor.joint_names, self._config.model_joint_names)
        self._executor = executor

    @property
    def notice(self) -> str:
        """Return why the server does not serve this robot, empty if it does."""
        return self._registrar.notice

    def keep_registered(self, now_ns: int) -> None:
        """Ask for a place in the fleet, or for its renewal, if it is time."""
        if self._executor is not None:
            self._registrar.ask_if_due(self._executor, now_ns)

    def send(
        self, executor: ChunkExecutor, now_ns: int, sensed: Sensed, frames: list[Any], task: str
    ) -> None:
        """
        Send the next observation.

        :param now_ns: when it was due, steady clock [ns]
        :param frames: a picture of each camera
        :param task: the instruction
        """
        draft = executor.begin_request(now_ns, sensed)
        if draft is None:
            return
        names = self._names.to_model(executor.joint_names)
        message = convert.from_draft(draft, names, sensed.state, frames)
        message.stamp = self._now()
        message.instruction = task
        message.keyframe_spacing_ns = round(self._config.keyframe_spacing_s * 1e9)
        if words := self._size_warning.words(frames):
            self._node.get_logger().warning(words)
        self._publisher.publish(message)

    def _on_chunk(self, message: Any) -> None:
        executor, now_ns = self._executor, self._clock.now_ns()
        if executor is None:
            return
        try:
            reason = executor.accept(self._to_answer(message), now_ns)
        except Rejected as refusal:
            reason = executor.refuse(refusal)
        if reason is Reason.OK:
            self._accepted(now_ns)
            return
        self._warn(reason.name, f'no new chunk: {reason.name}: {executor.last_refusal}', now_ns)

    def _warn(self, kind: str, text: str, now_ns: int) -> None:
        words = self._repeats.words(kind, text, now_ns)
        if words is not None:
            self._node.get_logger().warning(words)

    def _to_answer(self, message: Any) -> Answer:
        message.joint_names = list(self._names.to_robot(message.joint_names))
        return convert.to_answer(message)

    def _on_budget(self, message: Any) -> None:
        try:
            if self._executor is not None:
                self._executor.set_budget(message.budget_ns, message.source)
        except Rejected as refusal:
            text = f'budget of {message.source!r}: {refusal}'
            self._warn(f'budget {refusal.reason.name}', text, self._clock.now_ns())

    def _on_server_state(self, message: Any) -> None:
        if self._executor is not None:
            ready = message.state == ServerState.READY
            self._executor.session.server_announced(message.epoch, ready=ready)

    def mismatches(self) -> list[qos.Mismatch]:
        """Return the publishers of chunks that can never reach this robot."""
        topic = f'{self._node.get_namespace()}/action_chunk'
        return qos.mismatches(self._node, topic, qos.CHUNK)
