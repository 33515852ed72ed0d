# SPDX-License-Identifier: Apache-2.0
"""rosbag2 recordings (MCAP or sqlite3) as serialised messages in the order of their time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rosbags.interfaces import QosDurability
from rosbags.rosbag2 import Reader, ReaderError

from xinfer_ros.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTopic:
    """
    One topic of a recording.

    :param name: as recorded
    :param type_name: such as ``sensor_msgs/msg/JointState``
    :param latched: whether it was offered transient local
    """

    name: str
    type_name: str
    latched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessage:
    """
    One message of a recording.

    :param offset_ns: time since the first message of the recording [ns]
    :param topic: name of its topic
    :param data: serialised (CDR)
    """

    offset_ns: int
    topic: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """
    A recording in memory.

    :param topics: its topics
    :param messages: its messages, oldest first
    """

    topics: tuple[RecordedTopic, ...]
    messages: tuple[RecordedMessage, ...]

    @property
    def duration_ns(self) -> int:
        """Return the time from the first to the last message [ns]."""
        return self.messages[-1].offset_ns if self.messages else 0


def find_bag(name: str, shipped: Path) -> Path:
    """
    Return the folder of a bag.

    :param name: a path, or the name of a shipped episode
    :param shipped: folder of the shipped episodes
    :raises ConfigError: if there is none; names the shipped ones
    """
    for candidate in (Path(name).expanduser(), shipped / name):
        if name and (candidate / 'metadata.yaml').is_file():
            return candidate
    known = ', '.join(shipped_bags(shipped)) or 'none found'
    raise ConfigError(
        f'bag {name!r}: no folder with a metadata.yaml; give a path, or one of: {known}'
    )


def shipped_bags(shipped: Path) -> Sequence[str]:
    """Return the names of the shipped episodes."""
    return sorted(path.parent.name for path in shipped.glob('*/metadata.yaml'))


def read_recording(folder: Path) -> Recording:
    """
    Read a whole bag into memory.

    :raises ConfigError: if it can't be read or is empty
    """
    try:
        with Reader(folder) as reader:
            topics = {}
            for connection in reader.connections:
                durabilities = [qos.durability for qos in connection.ext.offered_qos_profiles]  # type: ignore[union-attr]
                topics[connection.topic] = RecordedTopic(
                    name=connection.topic,
                    type_name=connection.msgtype,
                    latched=QosDurability.TRANSIENT_LOCAL in durabilities,
                )
            start_ns = reader.start_time
            messages = tuple(
                RecordedMessage(
                    offset_ns=stamp_ns - start_ns, topic=connection.topic, data=bytes(data)
                )
                for connection, stamp_ns, data in reader.messages()
            )
            recorded = reader.message_count
    except (ReaderError, OSError, ValueError) as error:
        raise ConfigError(f'bag {folder}: {error}') from error
    if len(messages) != recorded:
        raise ConfigError(f'bag {folder}: {recorded} messages recorded, {len(messages)} readable')
    if not messages:
        raise ConfigError(f'bag {folder}: it holds no message')
    return Recording(topics=tuple(topics.values()), messages=messages)
