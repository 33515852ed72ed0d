# SPDX-License-Identifier: Apache-2.0
"""The newest picture of each camera and the newest joint readings, fetched when needed."""

from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image, JointState

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.joint_readings import JointReading, JointReadings
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import camera_frame

LOOK_POLLS = 16


class Sensors:
    """
    Subscriptions that nobody spins: the middleware keeps the newest message and ``poll`` takes it.

    A callback a picture would cost rclpy about a millisecond each, and a robot needs few of them.
    Best effort, which matches every driver. Belongs to the control thread.

    :param node: the executor node
    :param config: its settings
    """

    def __init__(self, node: Node, config: ExecutorConfig) -> None:
        self._compressed = config.camera_transport == 'compressed'
        self._timeout_ns = round(config.sensor_timeout_s * 1e9)
        # a node of its own, since an executor would spin all subscriptions of a node; its name is
        # a rule of its own, which is stronger than one for the process
        name = f'{node.get_name()}_sensors'
        self._node = Node(
            name,
            context=node.context,
            cli_args=['--ros-args', '-r', f'__node:={name}'],
            namespace=node.get_namespace(),
            start_parameter_services=False,
            enable_rosout=False,
        )
        kind = CompressedImage if self._compressed else Image
        self._cameras = {
            name: self._subscribe(kind, topic, qos.SENSOR)
            for name, topic in config.topic_by_camera().items()
        }
        self._joints = self._subscribe(JointState, config.joint_state_topic, qos.JOINTS)
        self._newest: dict[str, tuple[Any, int]] = {}
        self._readings = JointReadings(self._timeout_ns)
        self._read_ns: int | None = None
        self._polls = 0
        self._packed: bytes | None = None  # the newest joint state, not unpacked yet
        self._polled_ns = 0

    def _subscribe(self, kind: Any, topic: str, profile: QoSProfile) -> Any:
        return self._node.create_subscription(kind, topic, lambda _: None, profile)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the joints of the first joint state, none before it."""
        return self._readings.first_names

    def poll(self, now_ns: int) -> None:
        """
        Take the joint states that have come, from one driver or several.

        Taking is cheap and unpacking is not: what a single driver has said is unpacked when it is
        read, but for a look now and then whether there are others.
        """
        packed = self._take_joints()
        self._polls += 1
        if not packed:
            return
        if self._readings.num_drivers == 1 and self._polls % LOOK_POLLS:
            self._packed, self._polled_ns = packed[-1], now_ns
            self._readings.heard(now_ns)
            return
        self._packed = None
        for data in packed:
            self._unpack(data, now_ns)

    def _unpack(self, data: bytes, now_ns: int) -> None:
        message = deserialize_message(data, JointState)
        self._readings.add(
            JointReading(
                names=tuple(message.name),
                position=message.position,
                effort=message.effort,
                arrival_ns=now_ns,
            )
        )

    def _take_joints(self) -> list[bytes]:
        """Return every joint state that nobody has taken, the oldest first, packed."""
        handle, found = self._joints.handle, []
        for _ in range(qos.JOINTS.depth):
            taken = handle.take_message(JointState, True)
            if taken is None:
                break
            found.append(taken[0])
        return found

    def trouble(self, joint_names: tuple[str, ...], now_ns: int) -> str:
        """Return which joints have gone silent, nothing while they are heard."""
        return self._readings.trouble(joint_names, now_ns)

    def forget(self) -> None:
        """Drop everything that has come so far; only what comes from now on is read."""
        self._forget_pictures()
        self._take_joints()
        self._packed = None
        self._readings.forget()

    def _forget_pictures(self) -> None:
        for subscription in self._cameras.values():
            self._take(subscription)
        self._newest.clear()

    @staticmethod
    def _take(subscription: Any) -> Any:
        """Return the newest message that nobody has taken, None if there is none."""
        taken = subscription.handle.take_message(subscription.msg_type, False)
        return None if taken is None else taken[0]

    def close(self) -> None:
        """Remove the subscriptions."""
        self._node.destroy_node()

    def read(self, joint_names: tuple[str, ...], now_ns: int) -> tuple[Sensed, list[Any]]:
        """
        Return the joints in the given order, and a frame of every camera.

        :raises Rejected: names what is missing or too old
        """
        if self._read_ns is None or now_ns - self._read_ns > self._timeout_ns:
            self._forget_pictures()  # one that waits may have come right after the last reading
        self._read_ns = now_ns
        for name, subscription in self._cameras.items():
            taken = self._take(subscription)
            if taken is not None:
                self._newest[name] = (taken, now_ns)
        frames = []
        for name in self._cameras:
            picture = self._fresh(self._newest.get(name), name, now_ns)
            frames.append(camera_frame(name, picture, compressed=self._compressed))
        if self._packed is not None:
            self._unpack(self._packed, self._polled_ns)
            self._packed = None
        return self._readings.sensed(joint_names, now_ns), frames

    def _fresh(self, entry: tuple[Any, int] | None, camera: str, now_ns: int) -> Any:
        if entry is None:
            topic = self._cameras[camera].topic_name
            publishers = self._node.count_publishers(topic)
            raise Rejected(
                Reason.REJECTED_STATE,
                f'no picture of camera {camera} yet: {topic} has {publishers} publishers; '
                'camera_topics says where it is looked for',
            )
        age_ns = now_ns - entry[1]
        if age_ns > self._timeout_ns:
            raise Rejected(
                Reason.REJECTED_STATE, f'camera {camera}: silent for {age_ns / 1e9:.1f} s'
            )
        return entry[0]

    def mismatches(self) -> list[qos.Mismatch]:
        """Return the publishers of sensor topics that can never reach this robot."""
        return [
            found
            for subscription in (*self._cameras.values(), self._joints)
            for found in qos.mismatches(self._node, subscription.topic_name, qos.SENSOR)
        ]
