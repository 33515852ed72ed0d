# SPDX-License-Identifier: Apache-2.0
"""A robot that speaks the wire contract by hand, so that a test can say anything."""

import itertools
from array import array
from typing import Any

import cv2
import numpy as np

from xinfer_ros.engine.robots import PROTOCOL_VERSION
from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.msg import ActionChunk, CameraFrame, CameraSpec, Observation
from xinfer_ros.ros import qos
from xinfer_ros.srv import RegisterRobot

from .graph import Graph

CONTRACT = echo_contract()
SPACING_NS = 30_000_000


def grey_jpeg(level: int) -> bytes:
    """Return a JPEG of one grey level, in the proportions of the model's pictures."""
    picture = np.full((56, 80, 3), level, np.uint8)
    return cv2.imencode('.jpg', picture)[1].tobytes()


class ScriptedRobot:
    """
    Registers and asks as told; keeps every answer.

    :param graph: where it lives
    :param robot_id: its id; its namespace is the same
    """

    def __init__(self, graph: Graph, robot_id: str, instance: int = 1) -> None:
        self._graph, self.robot_id, self.instance = graph, robot_id, instance
        node = graph.node
        self._client = node.create_client(RegisterRobot, '/fleet/register_robot')
        self._publisher = node.create_publisher(
            Observation, f'/{robot_id}/observation', qos.OBSERVATION
        )
        self._subscription = node.create_subscription(
            ActionChunk, f'/{robot_id}/action_chunk', self._on_chunk, qos.CHUNK
        )
        self._ids = itertools.count(1)
        self.session = 0
        self.epoch = 0
        self.chunks: list[Any] = []

    def _on_chunk(self, message: Any) -> None:
        self.chunks.append(message)

    def now_ns(self) -> int:
        """Return the wall clock [ns]."""
        return int(self._graph.node.get_clock().now().nanoseconds)

    def registration(self, **changes: Any) -> Any:
        """Return a registration that the server accepts, with changes."""
        request = RegisterRobot.Request()
        request.robot_id, request.robot_namespace = self.robot_id, f'/{self.robot_id}'
        request.joint_names = list(CONTRACT.joint_names)
        request.cameras = [
            CameraSpec(name=c.name, encoding='compressed') for c in CONTRACT.cameras
        ]
        request.keyframe_spacing_ns = SPACING_NS
        request.protocol_version = PROTOCOL_VERSION
        request.instance = self.instance
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def ask_to_register(self, **changes: Any) -> Any:
        """Register and return the response."""
        response = self._graph.ask(self._client, self.registration(**changes))
        if response.reason == Reason.OK:
            self.session, self.epoch = response.session, response.epoch
        return response

    def register(self, **changes: Any) -> None:
        """Register as soon as the engine is ready, and wait until the topics are matched."""
        self._graph.until(
            lambda: self.ask_to_register(**changes).reason == Reason.OK, 'the server accepts'
        )
        self._graph.until(
            lambda: (
                self._publisher.get_subscription_count() > 0
                and self._graph.node.count_publishers(f'/{self.robot_id}/action_chunk') > 0
            ),
            'the topics are matched',
        )

    def observation(self, level: int = 0, state: float = 0.0, **changes: Any) -> Any:
        """Return an observation that the server accepts, with changes."""
        message = Observation()
        message.session, message.request_id = self.session, next(self._ids)
        message.joint_names = list(CONTRACT.joint_names)
        message.state = array('f', [state] * CONTRACT.action_dim)
        data = array('B', grey_jpeg(level))
        message.images = [
            CameraFrame(name=camera.name, compressed=True, encoding='jpeg', data=data)
            for camera in CONTRACT.cameras
        ]
        message.budget_ns, message.keyframe_spacing_ns = 2_000_000_000, SPACING_NS
        message.minimum_period_ns = 180_000_000
        message.stamp = self._graph.node.get_clock().now().to_msg()
        for name, value in changes.items():
            setattr(message, name, value)
        return message

    def send(self, message: Any) -> int:
        """Publish an observation and return its request id."""
        self._publisher.publish(message)
        return int(message.request_id)

    def answer_to(self, request_id: int, within_s: float = 10.0) -> Any:
        """Wait for the answer to a request."""

        def found() -> Any:
            return [c for c in self.chunks if c.request_id == request_id]

        self._graph.until(found, f'{self.robot_id} gets an answer to {request_id}', within_s)
        return found()[0]

    def ask(self, level: int = 0, state: float = 0.0, **changes: Any) -> Any:
        """Send an observation and return the answer."""
        return self.answer_to(self.send(self.observation(level, state, **changes)))
