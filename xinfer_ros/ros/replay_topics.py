# SPDX-License-Identifier: Apache-2.0
"""The topics that an executor needs of a recording, and whether they are there."""

from collections.abc import Sequence

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.episodes.ros_types import COMPRESSED_IMAGE, IMAGE, JOINT_STATE, RosTypes
from xinfer_ros.episodes.topic import RequiredTopic, check_topics
from xinfer_ros.errors import ConfigError


def topics_of_executor(config: ExecutorConfig) -> tuple[RequiredTopic, ...]:
    """Return the topics without which an executor would wait for ever."""
    kind = COMPRESSED_IMAGE if config.camera_transport == 'compressed' else IMAGE
    cameras = config.topic_by_camera().values()
    return (
        RequiredTopic(name=config.joint_state_topic, type_name=JOINT_STATE),
        *(RequiredTopic(name=topic, type_name=kind) for topic in cameras),
    )


def check_recording(
    recording: Recording, required: Sequence[RequiredTopic], namespace: str, what: str
) -> None:
    """
    Refuse a recording that lacks a required topic, or holds one with another or a changed type.

    :param recording: what is to be played
    :param required: what is needed
    :param namespace: of the robot that is played; topics below it are taken relative to it
    :param what: the recording, for the error
    :raises ConfigError: names every missing topic
    """
    types = RosTypes()
    inner = [
        RequiredTopic(name=_relative(need.name, namespace), type_name=need.type_name)
        for need in required
    ]
    topics = [types.with_hash(topic) for topic in recording.topics]
    hashes = types.hashes(topic.type_name for topic in topics)
    check_topics(inner, topics, hashes, what)


def changed_types(recording: Recording) -> dict[str, str]:
    """Return the topics whose type is not the one that is known here, with the reason."""
    types = RosTypes()
    here = types.hashes(topic.type_name for topic in recording.topics)
    found = {}
    for topic in map(types.with_hash, recording.topics):
        known = here.get(topic.type_name)
        if known and topic.type_hash and topic.type_hash != known:
            found[topic.name] = f'its type {topic.type_name} has changed since it was recorded'
    return found


def _relative(name: str, namespace: str) -> str:
    """Return a topic's name as it stands in the recording."""
    prefix = f'{namespace.rstrip("/")}/'
    if name.startswith('/') and not name.startswith(prefix):
        raise ConfigError(
            f'topic {name} is outside of {namespace}, where recordings are played; make it '
            'relative to the namespace of the robot'
        )
    return name.removeprefix(prefix)
