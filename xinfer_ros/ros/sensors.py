# SPDX-License-Identifier: Apache-2.0
"""The newest picture of each camera and the newest joint state, fetched when they are needed."""

from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image, JointState

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import camera_frame


class Sensors:
    """
    Subscriptions that nobody spins: the middleware keeps the newest message and ``poll`` takes it.

    A callback a picture would cost rclpy about a millisecond each, and a robot needs few of them.
    Best effort, depth 1: that matches every camera driver. Belongs to the control thread.

    :param node: the executor node
    :param config: its settings
    """

    def __init__(self, node: Node, config: ExecutorConfig) -> None:
        self._compressed = config.camera_transport == 'compressed'
        self._timeout_ns = round(config.sensor_timeout_s * 1e9)
        # a node of its own, since an executor would spin all subscriptions of a node
        self._node = Node(
            f'{node.get_name()}_sensors',
            context=node.context,
            namespace=node.get_namespace(),
            start_parameter_services=False,
            enable_rosout=False,
        )
        kind = CompressedImage if self._compressed else Image
        suffix = '/image_raw/compressed' if self._compressed else '/image_raw'
        topics = config.camera_topics or tuple(f'{name}{suffix}' for name in config.camera_names)
        self._cameras = {
            name: self._subscribe(kind, topic)
            for name, topic in zip(config.camera_names, topics, strict=True)
        }
        self._joints = self._subscribe(JointState, config.joint_state_topic)
        self._newest: dict[str, tuple[Any, int]] = {}
        self._joint_state: tuple[Any, int] | None = None
        self._read_ns: int | None = None

    def _subscribe(self, kind: Any, topic: str) -> Any:
        return self._node.create_subscription(kind, topic, lambda _: None, qos.SENSOR)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the joints of the newest joint state, none before the first."""
        return tuple(self._joint_state[0].name) if self._joint_state is not None else ()

    def poll(self, now_ns: int) -> None:
        """Take the newest joint state, if there is a new one."""
        taken = self._take(self._joints)
        if taken is not None:
            self._joint_state = (taken, now_ns)

    def forget(self) -> None:
        """Drop everything that has come so far; only what comes from now on is read."""
        for subscription in (*self._cameras.values(), self._joints):
            self._take(subscription)
        self._newest.clear()
        self._joint_state = None

    @staticmethod
    def _take(subscription: Any) -> Any:
        """Return the newest message that nobody has taken, None if there is none."""
        taken = subscription.handle.take_message(subscription.msg_type, False)
        return None if taken is None else taken[0]

    def close(self) -> None:
        """Remove the subscriptions."""
        self._node.destroy_node()

    def read(self, joint_names: tuple[str, ...], now_ns: int) -> tuple[Any, list[Any]]:
        """
        Return the joint positions in the given order, and a frame of every camera.

        :raises Rejected: names what is missing or too old
        """
        if self._read_ns is None or now_ns - self._read_ns > self._timeout_ns:
            self.forget()  # what waits may have come right after the last reading, long ago
        self._read_ns = now_ns
        for name, subscription in self._cameras.items():
            taken = self._take(subscription)
            if taken is not None:
                self._newest[name] = (taken, now_ns)
        frames = []
        for name in self._cameras:
            picture = self._fresh(self._newest.get(name), f'camera {name}', now_ns)
            frames.append(camera_frame(name, picture, compressed=self._compressed))
        state = self._fresh(self._joint_state, 'joint states', now_ns)
        position = dict(zip(state.name, state.position, strict=False))
        missing = [name for name in joint_names if name not in position]
        if missing:
            raise Rejected(Reason.REJECTED_STATE, f'the joint state lacks {", ".join(missing)}')
        return np.array([position[name] for name in joint_names], np.float32), frames

    def _fresh(self, entry: tuple[Any, int] | None, what: str, now_ns: int) -> Any:
        if entry is None:
            raise Rejected(Reason.REJECTED_STATE, f'no message of {what} yet')
        age_ns = now_ns - entry[1]
        if age_ns > self._timeout_ns:
            raise Rejected(Reason.REJECTED_STATE, f'{what}: silent for {age_ns / 1e9:.1f} s')
        return entry[0]

    def mismatches(self) -> list[qos.Mismatch]:
        """Return the publishers of sensor topics that can never reach this robot."""
        subscriptions = [*self._cameras.values(), self._joints]
        return [
            found
            for subscription in subscriptions
            for found in qos.mismatches(self._node, subscription.topic_name, qos.SENSOR)
        ]
