# SPDX-License-Identifier: Apache-2.0
"""metadata.yaml of a bag: what it adds to the files, and what it says against them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from xinfer_ros.episodes.topic import RecordedTopic

NAME = 'metadata.yaml'
_INSTEAD = 'the files themselves are read'


@dataclass(frozen=True, slots=True, kw_only=True)
class BagMetadata:
    """
    What is used of it.

    :param trouble: why it could not be read, empty if it could, or if none is expected
    :param num_messages: how many were recorded, None if not told
    :param hashes: RIHS01 hash of the type of each topic
    """

    trouble: str = ''
    num_messages: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)

    def completed(self, topic: RecordedTopic) -> RecordedTopic:
        """Return a topic with its hash, if its file does not tell it."""
        if topic.type_hash is not None or not self.hashes.get(topic.name):
            return topic
        return replace(topic, type_hash=self.hashes[topic.name])

    def warnings(self, readable: int) -> list[str]:
        """
        Return what the user should know.

        :param readable: messages that can be read
        """
        if self.trouble:
            return [f'{self.trouble}; {_INSTEAD}']
        if self.num_messages not in (None, readable):
            return [f'{self.num_messages} messages were recorded, {readable} are readable']
        return []


def read_metadata(path: Path) -> BagMetadata:
    """
    Return the metadata of a bag; without any, its files tell enough.

    :param path: folder of the bag, or one of its files
    """
    if path.is_file():
        return BagMetadata()
    file = path / NAME
    if not file.is_file():
        return BagMetadata(trouble=f'there is no {NAME}, as after a power cut')
    try:
        found: Any = yaml.safe_load(file.read_text())['rosbag2_bagfile_information']
        topics = [entry['topic_metadata'] for entry in found['topics_with_message_count']]
        return BagMetadata(
            num_messages=int(found['message_count']),
            hashes={topic['name']: topic.get('type_description_hash') or '' for topic in topics},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return BagMetadata(trouble=f'{NAME} is not the metadata of a bag')
