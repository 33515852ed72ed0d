# SPDX-License-Identifier: Apache-2.0
"""The topics of a recording, and those that somebody needs of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from xinfer_ros.errors import ConfigError

# as rosbag2 writes it: a number of rmw until version 8, a word from version 9 on
_TRANSIENT_LOCAL = (1, 'transient_local')


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTopic:
    """
    One topic of a recording.

    :param name: as recorded
    :param type_name: such as ``sensor_msgs/msg/JointState``
    :param type_hash: of its type (RIHS01), None if the recording does not tell
    :param definition: text of its type, empty if the recording does not tell
    :param qos: quality of service that its publishers offered, YAML, empty if not told
    """

    name: str
    type_name: str
    type_hash: str | None = None
    definition: str = ''
    qos: str = ''

    @property
    def latched(self) -> bool:
        """Return whether it was transient local: its last message is kept for newcomers."""
        return any(profile.get('durability') in _TRANSIENT_LOCAL for profile in self._profiles())

    def _profiles(self) -> list[dict[str, object]]:
        try:
            found = yaml.safe_load(self.qos) or []
        except yaml.YAMLError:
            return []
        profiles = found if isinstance(found, list) else []
        return [profile for profile in profiles if isinstance(profile, dict)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTopic:
    """
    A topic that a recording must have.

    :param name: absolute, or relative to the namespace of the robot that is played
    :param type_name: such as ``sensor_msgs/msg/JointState``; empty: any
    """

    name: str
    type_name: str = ''


def missing_topics(
    required: Iterable[RequiredTopic], topics: Sequence[RecordedTopic]
) -> list[RequiredTopic]:
    """Return the topics that a recording lacks."""
    names = {topic.name.strip('/') for topic in topics}
    return [topic for topic in required if topic.name.strip('/') not in names]


def check_topics(
    required: Sequence[RequiredTopic],
    topics: Sequence[RecordedTopic],
    hashes: dict[str, str],
    what: str,
) -> None:
    """
    Refuse a recording that lacks a topic or holds it with another type.

    :param required: what is needed
    :param topics: what there is
    :param hashes: RIHS01 hash of each type as it is here, by type name
    :param what: the recording, for the error
    :raises ConfigError: with every topic that is missing, or the type that differs
    """
    lacking = missing_topics(required, topics)
    if lacking:
        needed = ', '.join(f'{topic.name} ({topic.type_name or "any type"})' for topic in lacking)
        found = ', '.join(f'{topic.name} ({topic.type_name})' for topic in topics) or 'nothing'
        raise ConfigError(
            f'{what} lacks {needed}; it holds {found}. Record what is missing, or set the topics '
            'and camera_transport of the executor to what there is'
        )
    by_name = {topic.name.strip('/'): topic for topic in topics}
    for need in required:
        _check_type(need, by_name[need.name.strip('/')], hashes, what)


def _check_type(
    need: RequiredTopic, found: RecordedTopic, hashes: dict[str, str], what: str
) -> None:
    if need.type_name and found.type_name != need.type_name:
        raise ConfigError(
            f'{what}: {found.name} is {found.type_name}, needed is {need.type_name}; choose '
            'another topic or transport in the settings of the executor'
        )
    here = hashes.get(found.type_name)
    if here and found.type_hash and found.type_hash != here:
        raise ConfigError(
            f'{what}: the type {found.type_name} of {found.name} has changed since it was '
            f'recorded: {found.type_hash} there, {here} here; convert the recording with the ROS '
            'version that made it'
        )
