# SPDX-License-Identifier: Apache-2.0
"""Message types without ROS: serialised, parsed, and told apart by their hash."""

from collections.abc import Iterable
from typing import Any

from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from xinfer_ros.episodes.topic import RecordedTopic

STRING = 'std_msgs/msg/String'
JOINT_STATE = 'sensor_msgs/msg/JointState'
IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
JOINT_TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
FLOAT_ARRAY = 'std_msgs/msg/Float64MultiArray'


class RosTypes:
    """The standard message types."""

    def __init__(self) -> None:
        self._store: Typestore = get_typestore(Stores.ROS2_KILTED)

    def parsed(self, data: bytes, type_name: str) -> Any:
        """
        Return a message as an object.

        :raises ValueError: if its bytes are none of this type
        """
        try:
            return self._store.deserialize_cdr(data, type_name)
        except (TypesysError, IndexError, UnicodeDecodeError, AssertionError) as error:
            raise ValueError(f'no {type_name}: {error}') from error

    def serialised(self, type_name: str, **fields: Any) -> bytes:
        """Return the bytes (CDR) of a message."""
        message = self._store.types[type_name](**fields)
        return bytes(self._store.serialize_cdr(message, type_name))

    def header(self, stamp_ns: int, frame_id: str) -> Any:
        """Return a ``std_msgs/Header``."""
        sec, nanosec = divmod(stamp_ns, 10**9)
        stamp = self._store.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
        return self._store.types['std_msgs/msg/Header'](stamp=stamp, frame_id=frame_id)

    def definition(self, type_name: str) -> tuple[str, str]:
        """Return the text and the RIHS01 hash of a type."""
        text, _ = self._store.generate_msgdef(type_name, ros_version=2)
        return text, self._store.hash_rihs01(type_name)

    def hashes(self, type_names: Iterable[str]) -> dict[str, str]:
        """Return the RIHS01 hash of each type that is known here."""
        known = [name for name in set(type_names) if name in self._store.fielddefs]
        return {name: self._store.hash_rihs01(name) for name in known}

    def with_hash(self, topic: RecordedTopic) -> RecordedTopic:
        """Return a topic with the hash of its type, worked out where only a definition is told."""
        if topic.type_hash is not None or not topic.definition:
            return topic
        store = get_typestore(Stores.EMPTY)
        try:
            store.register(get_types_from_msg(topic.definition, topic.type_name))
            digest = store.hash_rihs01(topic.type_name)
        except (TypesysError, KeyError, ValueError):
            return topic
        return RecordedTopic(
            name=topic.name,
            type_name=topic.type_name,
            type_hash=digest,
            definition=topic.definition,
            qos=topic.qos,
        )


def stamp_ns(data: bytes) -> int:
    """Return the stamp of a serialised message with a header in front [ns]; 0 if there is none."""
    if len(data) < 12:
        return 0
    order = 'little' if data[1] else 'big'
    sec = int.from_bytes(data[4:8], order, signed=True)  # type: ignore[arg-type]
    return sec * 10**9 + int.from_bytes(data[8:12], order)  # type: ignore[arg-type]
