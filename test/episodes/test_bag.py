# SPDX-License-Identifier: Apache-2.0
"""Recordings: the shipped episodes, and bags that are broken."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from xinfer_ros.episodes.bag import find_bag, read_recording, shipped_bags
from xinfer_ros.errors import ConfigError

SHIPPED = Path(__file__).parents[2] / 'episodes'
NAMES = ['transfer_cube_0', 'transfer_cube_1', 'transfer_cube_2']
CAMERAS = [f'/{name}/image_raw/compressed' for name in ('top', 'left_wrist', 'right_wrist')]
KEYFRAMES = 300


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of a shipped bag that may be broken."""
    folder = tmp_path / 'copy'
    shutil.copytree(SHIPPED / NAMES[0], folder)
    return folder


def _storage(folder: Path) -> Path:
    return next(folder.glob('*.mcap'))


def _error(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_recording(folder)
    return str(caught.value)


def test_shipped_episodes_are_found_by_name() -> None:
    assert shipped_bags(SHIPPED) == NAMES
    assert [find_bag(name, SHIPPED) for name in NAMES] == [SHIPPED / name for name in NAMES]


def test_bag_is_found_by_its_path(copy: Path) -> None:
    assert find_bag(str(copy), SHIPPED) == copy


@pytest.mark.parametrize('name', ['transfer_cube', '', '.', '..', '/', '/tmp/none', 'record.py'])
def test_unknown_bag_is_refused_and_the_shipped_ones_are_named(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_bag(name, SHIPPED)
    assert repr(name) in str(caught.value)
    assert ', '.join(NAMES) in str(caught.value)


def test_unknown_bag_is_refused_even_if_nothing_was_shipped(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='none found'):
        find_bag('transfer_cube_0', tmp_path)


@pytest.mark.parametrize('name', NAMES)
def test_shipped_episode_is_complete(name: str) -> None:
    """BR-04: read = recorded; 300 of each topic, the task once."""
    recording = read_recording(SHIPPED / name)
    counts = Counter(message.topic for message in recording.messages)
    each = ['/joint_states', '/joint_command', *CAMERAS]
    assert counts == {**dict.fromkeys(each, KEYFRAMES), '/task': 1}
    assert {topic.name for topic in recording.topics} == set(counts)
    types = {topic.name: topic.type_name for topic in recording.topics}
    assert types['/task'] == 'std_msgs/msg/String'
    assert types['/joint_states'] == 'sensor_msgs/msg/JointState'
    assert {types[camera] for camera in CAMERAS} == {'sensor_msgs/msg/CompressedImage'}


@pytest.mark.parametrize('name', NAMES)
def test_keyframes_are_30_ms_apart_and_in_order(name: str) -> None:
    recording = read_recording(SHIPPED / name)
    offsets = [message.offset_ns for message in recording.messages]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0
    for topic in ('/joint_states', *CAMERAS):
        times = [m.offset_ns for m in recording.messages if m.topic == topic]
        assert times == [index * 30_000_000 for index in range(KEYFRAMES)]
    assert recording.duration_ns == (KEYFRAMES - 1) * 30_000_000


@pytest.mark.parametrize('name', NAMES)
def test_task_is_latched_and_comes_first(name: str) -> None:
    """BR-01: a TRANSIENT_LOCAL task at t = 0 is known to be one."""
    recording = read_recording(SHIPPED / name)
    assert {topic.name for topic in recording.topics if topic.latched} == {'/task'}
    (task,) = [message for message in recording.messages if message.topic == '/task']
    assert task.offset_ns == 0
    assert b'cube' in task.data


def test_pictures_are_whole_jpeg_files() -> None:
    recording = read_recording(SHIPPED / NAMES[0])
    pictures = [m.data for m in recording.messages if m.topic in CAMERAS]
    assert all(b'\xff\xd8' in data[:80] and b'\xff\xd9' in data[-6:] for data in pictures)


@pytest.mark.parametrize('share', [0, 1, 70, 99])
def test_truncated_bag_is_refused(copy: Path, share: int) -> None:
    """BR-02: a bag after a power cut fails with one clear line."""
    data = _storage(copy).read_bytes()
    _storage(copy).write_bytes(data[: len(data) * share // 100])
    assert str(copy) in _error(copy)


def test_bag_with_a_damaged_middle_is_refused(copy: Path) -> None:
    """BR-04: fewer messages than were recorded are never played in silence."""
    data = bytearray(_storage(copy).read_bytes())
    middle = len(data) // 3
    data[middle : middle + 2000] = bytes(byte ^ 0x55 for byte in data[middle : middle + 2000])
    _storage(copy).write_bytes(data)
    assert str(copy) in _error(copy)


def test_bag_without_its_storage_is_refused(copy: Path) -> None:
    _storage(copy).unlink()
    assert str(copy) in _error(copy)


def test_empty_and_missing_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    assert str(tmp_path / 'empty') in _error(tmp_path / 'empty')
    assert str(tmp_path / 'missing') in _error(tmp_path / 'missing')


@pytest.mark.parametrize(
    'content', [b'', b'a: [', b'x: 1', b'[]', b'5', b'\xff\xfe\x00', b'!!python/name:os.system ""']
)
def test_unreadable_metadata_is_refused(copy: Path, content: bytes) -> None:
    """BR-02, SE-01: one clear line, and nothing in it is run."""
    (copy / 'metadata.yaml').write_bytes(content)
    assert str(copy) in _error(copy)


def test_bag_without_messages_is_refused(tmp_path: Path) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(tmp_path / 'empty', version=9, storage_plugin=StoragePlugin.MCAP):
        pass
    assert str(tmp_path / 'empty') in _error(tmp_path / 'empty')
