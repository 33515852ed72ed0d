# SPDX-License-Identifier: Apache-2.0
"""Episodes as rosbag2 folders: MCAP, chunks packed with zstd."""

from collections.abc import Sequence
from pathlib import Path

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.messages import EpisodeRecording
from xinfer_ros.episodes.reader import Progress
from xinfer_ros.episodes.topic import RecordedTopic

_UNLIMITED = QosTime(2147483647, 4294967295)  # as rosbag2 spells it


class Rosbag2Writer:
    """Writes a bag of joint states, commands, pictures, which stay as they are, and the task."""

    format = 'rosbag2'
    suffix = ''
    holds_many = False

    def write(self, episodes: Sequence[Episode], path: Path, progress: Progress) -> None:
        """Write one episode."""
        (episode,) = episodes
        recording = EpisodeRecording(episode, jpeg=False)
        writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        total = recording.num_messages
        with writer:
            connections = {topic.name: _connection(writer, topic) for topic in recording.topics}
            for number, message in enumerate(recording.messages(), 1):
                assert message.data is not None  # made here, so not damaged
                stamp_ns = episode.start_ns + message.offset_ns
                writer.write(connections[message.topic], stamp_ns, message.data)
                progress(number, total)


def _connection(writer: Writer, topic: RecordedTopic) -> Connection:
    durability = QosDurability.TRANSIENT_LOCAL if topic.latched else QosDurability.VOLATILE
    profile = Qos(
        history=QosHistory.KEEP_LAST,
        depth=1 if topic.latched else 10,
        reliability=QosReliability.RELIABLE,
        durability=durability,
        deadline=_UNLIMITED,
        lifespan=_UNLIMITED,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=_UNLIMITED,
        avoid_ros_namespace_conventions=False,
    )
    return writer.add_connection(
        topic.name,
        topic.type_name,
        msgdef=topic.definition,
        rihs01=topic.type_hash,
        offered_qos_profiles=[profile],
    )
