# SPDX-License-Identifier: Apache-2.0
"""Whether a recording has what is needed of it."""

from dataclasses import replace

import pytest

from xinfer_ros.episodes.ros_types import COMPRESSED_IMAGE, JOINT_STATE, RosTypes
from xinfer_ros.episodes.topic import RecordedTopic, RequiredTopic, check_topics
from xinfer_ros.errors import ConfigError

TYPES = RosTypes()
HASHES = TYPES.hashes([JOINT_STATE, COMPRESSED_IMAGE])
JOINTS = RecordedTopic(name='/joint_states', type_name=JOINT_STATE)
TOP = RecordedTopic(name='/top/image_raw/compressed', type_name=COMPRESSED_IMAGE)
NEEDED = [
    RequiredTopic(name='joint_states', type_name=JOINT_STATE),
    RequiredTopic(name='top/image_raw/compressed', type_name=COMPRESSED_IMAGE),
]


def _error(*topics: RecordedTopic) -> str:
    with pytest.raises(ConfigError) as caught:
        check_topics(NEEDED, topics, HASHES, 'episode it')
    return str(caught.value)


def test_complete_recording_is_accepted_and_more_does_no_harm() -> None:
    unknown = RecordedTopic(name='/odd', type_name='my_msgs/msg/Odd', type_hash='RIHS01_1')
    check_topics(NEEDED, [JOINTS, TOP, unknown], HASHES, 'episode it')


def test_every_missing_topic_is_named() -> None:
    """BR-04."""
    text = _error(RecordedTopic(name='/wrist', type_name=COMPRESSED_IMAGE))
    assert 'episode it lacks joint_states (sensor_msgs/msg/JointState)' in text
    assert 'top/image_raw/compressed (sensor_msgs/msg/CompressedImage)' in text
    assert 'it holds /wrist' in text


def test_other_type_is_refused() -> None:
    assert 'is std_msgs/msg/String, needed is' in _error(
        JOINTS, replace(TOP, type_name='std_msgs/msg/String')
    )


def test_changed_type_is_refused_by_its_hash() -> None:
    """BR-04."""
    changed = replace(JOINTS, type_hash='RIHS01_' + '0' * 64)
    assert 'has changed since it was recorded: RIHS01_000' in _error(changed, TOP)
    check_topics(NEEDED, [replace(JOINTS, type_hash=HASHES[JOINT_STATE]), TOP], HASHES, 'it')


def test_hash_is_worked_out_where_only_the_definition_was_recorded() -> None:
    """Recordings of before ROS 2 Iron have no hashes."""
    text, digest = TYPES.definition(JOINT_STATE)
    assert TYPES.with_hash(replace(JOINTS, definition=text)).type_hash == digest
    other = text.replace('float64[] effort', 'float32[] effort')
    assert TYPES.with_hash(replace(JOINTS, definition=other)).type_hash not in (digest, None)
    assert TYPES.with_hash(replace(JOINTS, definition='no definition')).type_hash is None


@pytest.mark.parametrize(
    ('qos', 'latched'),
    [
        ('- {durability: 1, reliability: 1}', True),
        ('- {durability: transient_local, reliability: best_effort}', True),
        ('- {durability: 2}\n- {durability: 1}', True),
        ('- {durability: 2, reliability: 2}', False),
        ('', False),
        ('{', False),
        ('5', False),
        ('- 5', False),
    ],
)
def test_quality_of_service_is_read_from_numbers_and_words(qos: str, latched: bool) -> None:
    """BR-01."""
    assert replace(JOINTS, qos=qos).latched == latched
