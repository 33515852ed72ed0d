# SPDX-License-Identifier: Apache-2.0
"""One pass over a bag that makes it an episode: which topic is what, and what it says."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from xinfer_ros.episodes.bag import Bag
from xinfer_ros.episodes.episode import Camera, Episode, Frame
from xinfer_ros.episodes.reader import Progress
from xinfer_ros.episodes.readers.joint_messages import JointMessages
from xinfer_ros.episodes.readers.picture_messages import PictureMessages, frame_of
from xinfer_ros.episodes.ros_types import (
    COMPRESSED_IMAGE,
    FLOAT_ARRAY,
    IMAGE,
    JOINT_STATE,
    JOINT_TRAJECTORY,
    STRING,
    RosTypes,
)
from xinfer_ros.episodes.topic import RecordedTopic

_COMMAND_WORDS = ('command', 'cmd', 'action', 'target', 'desired', 'trajectory')
_TASK_WORDS = ('task', 'instruction', 'language_instruction', 'prompt')


class BagPass:
    """
    One pass over a bag.

    :param path: of the bag
    :param name: of the episode
    :param bag: open
    """

    def __init__(self, path: Path, name: str, bag: Bag) -> None:
        self._path, self._name, self._bag = path, name, bag
        self._types = RosTypes()
        self._warnings = list(bag.warnings)
        topics = self._readable()
        commands = [topic for topic in topics if _is_command(topic)]
        states = [t for t in topics if t.type_name == JOINT_STATE and t not in commands]
        self._states = self._joints(states, 'joint states')
        self._commands = self._joints(commands, 'commands')
        kinds = (IMAGE, COMPRESSED_IMAGE)
        self._pictures = {
            topic.name: PictureMessages(topic.name, topic.type_name, self._types)
            for topic in topics
            if topic.type_name in kinds
        }
        self._task_topics = [topic.name for topic in topics if _is_task(topic)]
        self._task = ''

    def run(self, progress: Progress) -> Episode:
        """
        Read every message once and return the episode.

        :param progress: takes in how many messages are read
        """
        damaged, total = 0, self._bag.num_messages
        for number, message in enumerate(self._bag.messages(), 1):
            if message.data is None:
                damaged += 1
            else:
                self._take(message.offset_ns, message.topic, message.data)
            if number % 256 == 0 or number == total:
                progress(number, total)
        if damaged:
            self._warnings.append(f'{damaged} messages are damaged')
        joints = self._states.joints or self._commands.joints
        commands = self._commands.positions(joints)
        self._warnings += [*self._states.warnings, *self._commands.warnings]
        for pictures in self._pictures.values():
            self._warnings += pictures.warnings
        return Episode(
            name=self._name,
            joints=joints,
            states=self._states.positions(joints),
            velocities=self._states.velocities(joints),
            efforts=self._states.efforts(joints),
            commands=commands,
            cameras=tuple(self._cameras()),
            task=self._task,
            start_ns=self._bag.start_ns,
            warnings=tuple(self._warnings),
        )

    def _take(self, offset_ns: int, topic: str, data: bytes) -> None:
        if topic in self._pictures:
            self._pictures[topic].take(offset_ns, data)
        elif topic == self._states.topic:
            self._states.take(offset_ns, data)
        elif topic == self._commands.topic:
            self._commands.take(offset_ns, data)
        elif topic in self._task_topics and not self._task:
            self._task = str(self._types.parsed(data, STRING).data)

    def _readable(self) -> list[RecordedTopic]:
        """Return the topics whose types are those known here."""
        kept = []
        here = self._types.hashes(topic.type_name for topic in self._bag.topics)
        for topic in map(self._types.with_hash, self._bag.topics):
            known = here.get(topic.type_name)
            if known and topic.type_hash and topic.type_hash != known:
                self._warnings.append(
                    f'{topic.name} is not read: {topic.type_name} has changed, '
                    f'{topic.type_hash} there, {known} here'
                )
            else:
                kept.append(topic)
        return kept

    def _joints(self, topics: Sequence[RecordedTopic], what: str) -> JointMessages:
        ranked = sorted(topics, key=lambda topic: -len(self._bag.offsets_ns(topic.name)))
        if len(ranked) > 1:
            others = ', '.join(topic.name for topic in ranked[1:])
            self._warnings.append(f'{what} are taken from {ranked[0].name}, not from {others}')
        if not ranked:
            return JointMessages('', '', self._types)
        return JointMessages(ranked[0].name, ranked[0].type_name, self._types)

    def _cameras(self) -> Iterator[Camera]:
        for topic, found in self._pictures.items():
            if not found.times_ns:
                continue
            yield Camera(
                name=camera_name(topic),
                encoding=found.encoding,
                height=found.height,
                width=found.width,
                times_ns=np.array(found.times_ns, np.int64),
                stamps_ns=np.array(found.stamps_ns, np.int64),
                read=_FrameReader(self._path, found),
            )


class _FrameReader:
    """Yields the pictures of a topic."""

    def __init__(self, path: Path, found: PictureMessages) -> None:
        self._path, self._topic, self._type_name = path, found.topic, found.type_name
        self._size = (found.height, found.width)

    def __call__(self, start_ns: int) -> Iterator[Frame]:
        """Yield those from a time on; damaged ones are left out."""
        types = RosTypes()
        with Bag(self._path) as bag:
            for message in bag.messages(start_ns, (self._topic,)):
                if message.data is not None:
                    offset_ns = message.offset_ns
                    yield frame_of(message.data, self._type_name, offset_ns, types, self._size)


def camera_name(topic: str) -> str:
    """Return the name of the camera of a topic: ``/top/image_raw/compressed`` is ``top``."""
    parts = [part for part in topic.split('/') if part]
    while len(parts) > 1 and parts[-1] in ('compressed', 'image_raw', 'image', 'image_rect'):
        parts.pop()
    return '_'.join(parts)


def _is_command(topic: RecordedTopic) -> bool:
    if topic.type_name in (JOINT_TRAJECTORY, FLOAT_ARRAY):
        return True
    name = topic.name.lower()
    return topic.type_name == JOINT_STATE and any(word in name for word in _COMMAND_WORDS)


def _is_task(topic: RecordedTopic) -> bool:
    return topic.type_name == STRING and topic.name.rpartition('/')[2] in _TASK_WORDS
