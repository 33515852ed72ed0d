# SPDX-License-Identifier: Apache-2.0
"""A server that a test speaks by hand, and what an executor publishes to its robot."""

from array import array
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.msg import ActionChunk, ExecutorState, Observation, ServerState
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import fill_contract
from xinfer_ros.srv import RegisterRobot

from .graph import Graph


class ScriptedServer:
    """
    Registers everybody and answers as told; by default with rows that keep the robot still.

    :param graph: where it lives
    :param robot: namespace of the robot whose topics it serves
    :param contract: that it tells
    :param epoch: of the server
    """

    def __init__(
        self,
        graph: Graph,
        robot: str = '/r0',
        contract: ModelContract | None = None,
        epoch: int = 1,
    ) -> None:
        node = graph.node
        self.contract = contract if contract is not None else echo_contract()
        self.epoch, self.session = epoch, 100 + epoch
        self.requests: list[Any] = []
        self.registrations: list[Any] = []
        self.answers = True
        self.refusal: Rejected | None = None  # of registrations
        self.motion = 0.0  # of every joint, from row to row
        self._service = node.create_service(RegisterRobot, '/fleet/register_robot', self._register)
        self._state = node.create_publisher(ServerState, '/fleet/server_state', qos.STATE)
        self._chunks = node.create_publisher(ActionChunk, f'{robot}/action_chunk', qos.CHUNK)
        self._subscription = node.create_subscription(
            Observation, f'{robot}/observation', self._on_observation, qos.OBSERVATION
        )
        self._state.publish(ServerState(epoch=epoch, state=ServerState.READY))

    def _register(self, request: Any, response: Any) -> Any:
        self.registrations.append(request)
        if self.refusal is not None:
            response.reason, response.detail = self.refusal.reason, self.refusal.detail
            return response
        response.reason, response.session, response.epoch = 0, self.session, self.epoch
        response.lease_ns = 5_000_000_000
        fill_contract(response, self.contract)
        return response

    def _on_observation(self, message: Any) -> None:
        self.requests.append(message)
        if self.answers:
            self.send(self.chunk(message))

    def rows(self, request: Any) -> Rows:
        """Return the rows of a good answer: from the measured state, all joints moving alike."""
        steps = np.arange(1, self.contract.horizon + 1, dtype=np.float32)[:, None]
        return np.array(request.state, np.float32) + np.float32(self.motion) * steps

    def chunk(self, request: Any, **changes: Any) -> Any:
        """Return a good answer, with changes."""
        message = ActionChunk()
        for name in ('session', 'episode', 'request_id', 'keyframe_spacing_ns', 'joint_names'):
            setattr(message, name, getattr(request, name))
        message.epoch, message.start_step = self.epoch, request.executed_steps
        rows = self.rows(request)
        message.num_rows, message.rows = len(rows), array('f', rows.tobytes())
        for name, value in changes.items():
            setattr(message, name, value)
        return message

    def send(self, message: Any) -> None:
        """Publish an answer."""
        self._chunks.publish(message)


class Listener:
    """
    Keeps what an executor publishes.

    :param graph: where it lives
    :param robot: namespace of the robot
    :param topic: its command topic
    :param kind: message of the command topic
    """

    def __init__(
        self,
        graph: Graph,
        robot: str = '/r0',
        topic: str = 'joint_trajectory',
        kind: Any = JointTrajectory,
    ) -> None:
        self.commands: list[Any] = []
        self.arrivals_s: list[float] = []
        self.reports: list[Any] = []
        self._graph = graph
        graph.node.create_subscription(kind, f'{robot}/{topic}', self._on_command, 100)
        graph.node.create_subscription(
            ExecutorState, f'{robot}/executor_state', self.reports.append, qos.CHUNK
        )

    def _on_command(self, message: Any) -> None:
        self.commands.append(message)
        self.arrivals_s.append(self._graph.now_s())

    @property
    def report(self) -> Any:
        """Return the newest report, None before the first."""
        return self.reports[-1] if self.reports else None

    @property
    def state(self) -> int | None:
        """Return the state in the newest report, None before the first."""
        return self.report.state if self.reports else None

    def count(self, reason: Reason) -> int:
        """Return how often the newest report counts a reason."""
        if self.report is None or reason.name not in self.report.reasons:
            return 0
        return int(self.report.reason_counts[list(self.report.reasons).index(reason.name)])
