# SPDX-License-Identifier: Apache-2.0
"""An episode of any format as messages: what a robot's nodes would have heard."""

import numpy as np
import pytest

from xinfer_ros.episodes.messages import EpisodeRecording
from xinfer_ros.episodes.readers.picture_messages import frame_of
from xinfer_ros.episodes.ros_types import COMPRESSED_IMAGE, IMAGE, RosTypes

from .samples import FRAMES, JOINTS, STEP_NS, camera, sample

TYPES = RosTypes()


def test_every_topic_has_its_messages_in_the_order_of_time() -> None:
    recording = EpisodeRecording(sample(), jpeg=True)
    messages = list(recording.messages())
    assert len(messages) == recording.num_messages == 4 * FRAMES + 1
    assert [one.offset_ns for one in messages] == sorted(one.offset_ns for one in messages)
    assert [one.topic for one in messages[:5]] == [
        '/task', '/joint_states', '/joint_command', '/top/image_raw/compressed',
        '/wrist/image_raw/compressed',
    ]  # fmt: skip
    assert recording.duration_ns == (FRAMES - 1) * STEP_NS


def test_only_the_task_is_latched() -> None:
    topics = EpisodeRecording(sample(), jpeg=True).topics
    assert [topic.name for topic in topics if topic.latched] == ['/task']
    assert all(topic.type_hash and topic.type_hash.startswith('RIHS01_') for topic in topics)


def test_joints_are_told_by_name_and_unknown_ones_left_out() -> None:
    episode = sample()
    assert episode.commands is not None
    episode.commands.values[:, 0] = np.nan
    (message, *_) = EpisodeRecording(episode, jpeg=True).messages(topics=['/joint_command'])
    told = TYPES.parsed(message.data or b'', 'sensor_msgs/msg/JointState')
    assert told.name == [JOINTS[1]]
    (message, *_) = EpisodeRecording(episode, jpeg=True).messages(topics=['/joint_states'])
    told = TYPES.parsed(message.data or b'', 'sensor_msgs/msg/JointState')
    assert told.name == list(JOINTS)
    assert told.effort.tolist() == pytest.approx([0.0, 0.1])


@pytest.mark.parametrize(
    ('jpeg', 'stored', 'kind', 'encoding'),
    [
        (True, True, COMPRESSED_IMAGE, 'jpeg'),
        (True, False, COMPRESSED_IMAGE, 'jpeg'),
        (False, True, COMPRESSED_IMAGE, 'jpeg'),
        (False, False, IMAGE, 'rgb8'),
    ],
)
def test_pictures_are_packed_if_asked_for(
    jpeg: bool, stored: bool, kind: str, encoding: str
) -> None:
    episode = sample(jpeg=stored)
    recording = EpisodeRecording(episode, jpeg=jpeg)
    topic = '/top/image_raw/compressed' if kind == COMPRESSED_IMAGE else '/top/image_raw'
    messages = list(recording.messages(start_ns=4 * STEP_NS, topics=[topic]))
    assert len(messages) == FRAMES - 4
    frame = frame_of(messages[0].data or b'', kind, 4 * STEP_NS, TYPES)
    assert frame.encoding == encoding
    if jpeg == stored:
        assert frame == next(episode.cameras[0].frames(4 * STEP_NS))


@pytest.mark.parametrize(
    ('name', 'topic'),
    [('top', '/top/image_raw'), ('observation.image', '/observation_image/image_raw'),
     ('0', '/_0/image_raw')],
)  # fmt: skip
def test_name_of_a_camera_becomes_a_name_of_a_topic(name: str, topic: str) -> None:
    """Data sets use dots, which ROS does not allow."""
    episode = sample(cameras=(camera(name, jpeg=False),))
    assert EpisodeRecording(episode, jpeg=False).topics[-1].name == topic
