# SPDX-License-Identifier: Apache-2.0
"""An episode of any format as the messages that a bag of it would hold."""

import heapq
import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from xinfer_ros.episodes.bag import RecordedMessage
from xinfer_ros.episodes.episode import JPEG, PNG, Camera, Episode, Frame, Series
from xinfer_ros.episodes.pictures import as_jpeg
from xinfer_ros.episodes.ros_types import (
    COMPRESSED_IMAGE,
    IMAGE,
    JOINT_STATE,
    STRING,
    RosTypes,
)
from xinfer_ros.episodes.topic import RecordedTopic

TASK, STATES, COMMANDS = '/task', '/joint_states', '/joint_command'
_STREAM = '[{reliability: reliable, durability: volatile}]'
_LATCHED = '[{reliability: reliable, durability: transient_local}]'


class EpisodeRecording:
    """
    The messages of an episode, made as they are asked for.

    :param episode: what is played
    :param jpeg: whether every picture becomes a JPEG; if not, raw ones stay raw
    """

    def __init__(self, episode: Episode, *, jpeg: bool) -> None:
        self._episode, self._jpeg, self._types = episode, jpeg, RosTypes()
        # the instruction comes first, then what is of one time in this order
        self._sources = [
            *([(TASK, STRING, self._task)] if episode.task else []),
            *([(STATES, JOINT_STATE, self._states)] if episode.states is not None else []),
            *([(COMMANDS, JOINT_STATE, self._commands)] if episode.commands is not None else []),
        ]

    @property
    def topics(self) -> Sequence[RecordedTopic]:
        """Return its topics."""
        kinds = [(name, kind) for name, kind, _ in self._sources]
        kinds += [(self._camera_topic(c), self._camera_type(c)) for c in self._episode.cameras]
        return tuple(self._topic(name, kind) for name, kind in kinds)

    @property
    def duration_ns(self) -> int:
        """Return the length of the episode [ns]."""
        return self._episode.duration_ns

    @property
    def num_messages(self) -> int:
        """Return how many messages it holds."""
        episode = self._episode
        series = [one for one in (episode.states, episode.commands) if one is not None]
        counts = [len(one.times_ns) for one in series]
        counts += [len(camera.times_ns) for camera in episode.cameras]
        return sum(counts) + bool(episode.task)

    @property
    def warnings(self) -> Sequence[str]:
        """Return what is wrong with it."""
        return self._episode.warnings

    def close(self) -> None:
        """Do nothing: its files are open only while frames are read."""

    def messages(
        self, start_ns: int = 0, topics: Collection[str] | None = None
    ) -> Iterator[RecordedMessage]:
        """
        Yield messages, oldest first.

        :param start_ns: from when on, after the start of the episode [ns]
        :param topics: names of the wanted topics; None: all
        """
        streams = [
            make(start_ns) for name, _, make in self._sources if topics is None or name in topics
        ]
        streams += [
            self._pictures(camera, start_ns)
            for camera in self._episode.cameras
            if topics is None or self._camera_topic(camera) in topics
        ]
        return heapq.merge(*streams, key=lambda message: message.offset_ns)

    def _topic(self, name: str, kind: str) -> RecordedTopic:
        text, digest = self._types.definition(kind)
        qos = _LATCHED if name == TASK else _STREAM
        return RecordedTopic(name=name, type_name=kind, type_hash=digest, definition=text, qos=qos)

    def _task(self, start_ns: int) -> Iterator[RecordedMessage]:
        if start_ns <= 0:
            data = self._types.serialised(STRING, data=self._episode.task)
            yield RecordedMessage(offset_ns=0, topic=TASK, data=data)

    def _states(self, start_ns: int) -> Iterator[RecordedMessage]:
        episode = self._episode
        assert episode.states is not None
        return self._joints(STATES, episode.states, start_ns, episode.velocities, episode.efforts)

    def _commands(self, start_ns: int) -> Iterator[RecordedMessage]:
        assert self._episode.commands is not None
        return self._joints(COMMANDS, self._episode.commands, start_ns, None, None)

    def _joints(
        self,
        topic: str,
        positions: Series,
        start_ns: int,
        velocities: Series | None,
        efforts: Series | None,
    ) -> Iterator[RecordedMessage]:
        times_ns = positions.times_ns
        none = np.empty((len(times_ns), 0))
        velocity = none if velocities is None else velocities.at(times_ns)
        effort = none if efforts is None else efforts.at(times_ns)
        for row in range(int(np.searchsorted(times_ns, start_ns)), len(times_ns)):
            told = ~np.isnan(positions.values[row])
            offset_ns = int(times_ns[row])
            yield RecordedMessage(
                offset_ns=offset_ns,
                topic=topic,
                data=self._types.serialised(
                    JOINT_STATE,
                    header=self._types.header(self._episode.start_ns + offset_ns, ''),
                    name=[
                        name
                        for name, is_told in zip(self._episode.joints, told, strict=True)
                        if is_told
                    ],
                    position=positions.values[row][told],
                    velocity=velocity[row][told] if velocity.shape[1] else none[row],
                    effort=effort[row][told] if effort.shape[1] else none[row],
                ),
            )

    def _pictures(self, camera: Camera, start_ns: int) -> Iterator[RecordedMessage]:
        topic = self._camera_topic(camera)
        row = int(np.searchsorted(camera.times_ns, start_ns))
        for frame in camera.frames(start_ns):
            stamp_ns = int(camera.stamps_ns[min(row, len(camera.stamps_ns) - 1)])
            yield RecordedMessage(
                offset_ns=frame.time_ns, topic=topic, data=self._picture(camera, frame, stamp_ns)
            )
            row += 1

    def _picture(self, camera: Camera, frame: Frame, stamp_ns: int) -> bytes:
        header = self._types.header(stamp_ns, camera.name)
        if self._camera_type(camera) == COMPRESSED_IMAGE:
            kept = frame.encoding == PNG and not self._jpeg
            data = np.frombuffer(frame.data if kept else as_jpeg(frame), np.uint8)
            kind = PNG if kept else JPEG
            return self._types.serialised(COMPRESSED_IMAGE, header=header, format=kind, data=data)
        return self._types.serialised(
            IMAGE,
            header=header,
            height=frame.height,
            width=frame.width,
            encoding=frame.encoding,
            is_bigendian=0,
            step=len(frame.data) // max(frame.height, 1),
            data=np.frombuffer(frame.data, np.uint8),
        )

    def _camera_type(self, camera: Camera) -> str:
        packed = self._jpeg or camera.encoding in (JPEG, PNG)
        return COMPRESSED_IMAGE if packed else IMAGE

    def _camera_topic(self, camera: Camera) -> str:
        suffix = '/compressed' if self._camera_type(camera) == COMPRESSED_IMAGE else ''
        return f'/{_topic_word(camera.name)}/image_raw{suffix}'


def _topic_word(name: str) -> str:
    """Return a name as a part of a topic: letters, digits and underscores."""
    word = re.sub(r'[^A-Za-z0-9_/]', '_', name)
    return word if not word[:1].isdigit() else f'_{word}'
