# SPDX-License-Identifier: Apache-2.0
"""A robot that RPent stands behind: it asks the fleet's server for one chunk at a time."""

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node

from xinfer_ros.brain.rpent import Prediction
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ActionChunk, Observation
from xinfer_ros.msg import CameraFrame as CameraFrameMsg
from xinfer_ros.ros import convert, qos
from xinfer_ros.srv import RegisterRobot

Resolve = Callable[[Any], None]


class RpentRobot:
    """
    One session with the server; belongs to rclpy's thread.

    Every call is an episode of its own, since RPent executes a whole chunk and asks anew.

    :param node: the brain node
    :param number: of this robot among those of the endpoint
    :param config: settings
    """

    def __init__(self, node: Node, number: int, config: BrainConfig) -> None:
        self._node, self._config = node, config
        self._id = f'rpent_{number}'
        self._instance = secrets.randbits(63) | 1
        self._spacing_ns = round(config.rpent_spacing_s * 1e9)
        self._cameras = config.camera_by_rpent_name()
        self._client = node.create_client(RegisterRobot, f'{config.server}/register_robot')
        self._publisher = node.create_publisher(
            Observation, f'/{self._id}/observation', qos.OBSERVATION
        )
        node.create_subscription(
            ActionChunk, f'/{self._id}/action_chunk', self._on_chunk, qos.CHUNK
        )
        self._session = 0
        self._calls = 0
        self._resolve: Resolve | None = None

    def register(self, resolve: Resolve) -> None:
        """Ask for a session; resolve with None, or a Rejected that says why there is none."""
        if not self._client.service_is_ready():
            resolve(Rejected(Reason.NOT_READY, f'no server offers {self._client.srv_name}'))
            return
        registration = Registration(
            robot_id=self._id,
            namespace=f'/{self._id}',
            joint_names=self._config.rpent_joint_names,
            cameras=tuple(self._cameras.values()),
            keyframe_spacing_ns=self._spacing_ns,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=self._instance,
        )
        future = self._client.call_async(convert.from_registration(registration, ''))
        future.add_done_callback(lambda done: resolve(self._granted(done.result())))

    def _granted(self, response: Any) -> Rejected | None:
        if response.reason != Reason.OK:
            return Rejected(Reason.of(response.reason), response.detail)
        self._session = response.session
        return None

    def can_ask(self) -> bool:
        """Return whether the server listens to what is sent; a recorder may listen too."""
        return self._session != 0 and self._publisher.get_subscription_count() > 0

    def forget(self) -> None:
        """Ask for a session anew before the next call."""
        self._session = 0

    def ask(self, call: Prediction, resolve: Resolve) -> None:
        """Send an observation; resolve with its Answer, or a Rejected if it can't be sent."""
        names = self._config.rpent_joint_names
        if len(call.state) != len(names):
            text = f'{len(call.state)} numbers for {len(names)} joints: {", ".join(names)}'
            resolve(Rejected(Reason.REJECTED_STATE, text))
            return
        self._calls += 1
        self._resolve = resolve
        message = Observation(
            session=self._session,
            episode=self._calls,
            request_id=self._calls,
            instruction=call.instruction,
            joint_names=list(names),
            state=convert.float_array(call.state),
            budget_ns=round(self._config.rpent_budget_s * 1e9),
            minimum_period_ns=self._spacing_ns,
            keyframe_spacing_ns=self._spacing_ns,
            leftover=convert.float_array(np.zeros(0)),
        )
        message.images = [
            self._frame(self._cameras[name], frame)
            for name, frame in call.frames.items()
            if name in self._cameras
        ]
        message.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    @staticmethod
    def _frame(camera: str, frame: Any) -> CameraFrameMsg:
        message = CameraFrameMsg(
            name=camera,
            compressed=frame.compressed,
            encoding=frame.encoding,
            height=frame.height,
            width=frame.width,
            step=frame.step,
        )
        message.data = convert.byte_array(frame.data)
        return message

    def _on_chunk(self, message: Any) -> None:
        if self._resolve is None or message.request_id != self._calls:
            return
        resolve, self._resolve = self._resolve, None
        try:
            found: Answer | Rejected = convert.to_answer(message)
        except Rejected as refusal:
            found = refusal
        resolve(found)
