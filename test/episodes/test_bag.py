# SPDX-License-Identifier: Apache-2.0
"""Bags: the shipped episodes, compressed ones, and ones that are broken."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer

from xinfer_ros.episodes import compression
from xinfer_ros.episodes.bag import Bag, bag_files
from xinfer_ros.errors import ConfigError

from .samples import NAMES, SHIPPED, contents, copied

CAMERAS = [f'/{name}/image_raw/compressed' for name in ('top', 'left_wrist', 'right_wrist')]
KEYFRAMES = 300
KINDS = [
    (StoragePlugin.MCAP, CompressionMode.NONE),
    (StoragePlugin.MCAP, CompressionMode.STORAGE),
    (StoragePlugin.SQLITE3, CompressionMode.NONE),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of a shipped bag that may be broken."""
    folder = tmp_path / 'copy'
    shutil.copytree(SHIPPED / NAMES[0], folder)
    return folder


def _storage(folder: Path) -> Path:
    (file,) = bag_files(folder)
    return file


def _cut(folder: Path, share: int) -> None:
    """Cut the storage file of a bag; after a power cut there is no metadata either."""
    data = _storage(folder).read_bytes()
    _storage(folder).write_bytes(data[: len(data) * share // 100])
    (folder / 'metadata.yaml').unlink()


def _error(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Bag(folder)
    return str(caught.value)


@pytest.mark.parametrize('name', NAMES)
def test_shipped_episode_is_complete(name: str) -> None:
    """BR-04: read = recorded; 300 of each topic, the task once."""
    with Bag(SHIPPED / name) as bag:
        counts = Counter(message.topic for message in bag.messages())
        types = {topic.name: topic.type_name for topic in bag.topics}
        assert bag.num_messages == 5 * KEYFRAMES + 1
        assert bag.warnings == []
    each = ['/joint_states', '/joint_command', *CAMERAS]
    assert counts == {**dict.fromkeys(each, KEYFRAMES), '/task': 1}
    assert types['/task'] == 'std_msgs/msg/String'
    assert types['/joint_states'] == 'sensor_msgs/msg/JointState'
    assert {types[camera] for camera in CAMERAS} == {'sensor_msgs/msg/CompressedImage'}


@pytest.mark.parametrize('name', NAMES)
def test_keyframes_are_30_ms_apart_and_in_order(name: str) -> None:
    with Bag(SHIPPED / name) as bag:
        offsets = [message.offset_ns for message in bag.messages()]
        assert offsets == sorted(offsets)
        for topic in ('/joint_states', *CAMERAS):
            assert bag.offsets_ns(topic).tolist() == [30_000_000 * i for i in range(KEYFRAMES)]
        assert bag.duration_ns == (KEYFRAMES - 1) * 30_000_000


@pytest.mark.parametrize('name', NAMES)
def test_task_is_latched_and_comes_first(name: str) -> None:
    """BR-01: a TRANSIENT_LOCAL task at t = 0 is known to be one."""
    with Bag(SHIPPED / name) as bag:
        assert [topic.name for topic in bag.topics if topic.latched] == ['/task']
        (task,) = bag.messages(topics=['/task'])
    assert task.offset_ns == 0
    assert b'cube' in (task.data or b'')


@pytest.mark.parametrize(('plugin', 'mode'), KINDS)
def test_messages_are_read_from_a_time_on(
    tmp_path: Path, plugin: StoragePlugin, mode: CompressionMode
) -> None:
    bag = copied(tmp_path / 'bag', plugin, mode)
    whole = contents(bag)
    with Bag(bag) as opened:
        late = [(one.offset_ns, one.topic, one.data) for one in opened.messages(8_000_000_000)]
    assert late == [one for one in whole if one[0] >= 8_000_000_000]


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
@pytest.mark.parametrize('mode', [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bag_equals_the_plain_one(
    tmp_path: Path, plugin: StoragePlugin, mode: CompressionMode
) -> None:
    """BR-02 (c) and (d): zstd per file and per message; every byte is the same."""
    assert contents(copied(tmp_path / 'bag', plugin, mode)) == contents(SHIPPED / NAMES[0])


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
@pytest.mark.parametrize('mode', list(CompressionMode))
def test_bag_without_metadata_is_read_from_its_files(
    tmp_path: Path, plugin: StoragePlugin, mode: CompressionMode
) -> None:
    """BR-02 (a)."""
    if (plugin, mode) == (StoragePlugin.SQLITE3, CompressionMode.STORAGE):
        return  # there is no such thing
    folder = copied(tmp_path / 'bag', plugin, mode)
    (folder / 'metadata.yaml').unlink()
    assert contents(folder) == contents(SHIPPED / NAMES[0])
    with Bag(folder) as bag:
        assert any('no metadata.yaml' in warning for warning in bag.warnings)
        assert [topic.name for topic in bag.topics if topic.latched] == ['/task']


@pytest.mark.parametrize(('plugin', 'mode'), [*KINDS, (StoragePlugin.MCAP, CompressionMode.FILE)])
@pytest.mark.parametrize('share', [30, 70, 99])
def test_bag_cut_short_gives_every_whole_message(
    tmp_path: Path, plugin: StoragePlugin, mode: CompressionMode, share: int
) -> None:
    """BR-02 (b): a bag after a power cut; a warning tells the count."""
    folder = copied(tmp_path / 'bag', plugin, mode)
    _cut(folder, share)
    found = contents(folder)
    whole = contents(SHIPPED / NAMES[0])
    assert found == whole[: len(found)]
    # what is stored beside the messages, and what a compressor holds back, is little
    assert share / 100 - 0.1 < len(found) / len(whole) <= share / 100 + 0.02
    with Bag(folder) as bag:
        assert any(f'cut short: {len(found)} whole' in warning for warning in bag.warnings)


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_bag_cut_down_to_nothing_is_refused(tmp_path: Path, plugin: StoragePlugin) -> None:
    folder = copied(tmp_path / 'bag', plugin)
    _cut(folder, 0)
    assert str(folder) in _error(folder)


def test_bag_with_a_damaged_middle_says_which_messages_are_lost(copy: Path) -> None:
    """BR-04: fewer messages than were recorded are never played in silence."""
    data = bytearray(_storage(copy).read_bytes())
    middle = len(data) // 3
    data[middle : middle + 2000] = bytes(byte ^ 0x55 for byte in data[middle : middle + 2000])
    _storage(copy).write_bytes(data)
    found, whole = contents(copy), contents(SHIPPED / NAMES[0])
    assert len(found) == len(whole)
    lost = [one for one in found if one[2] is None]
    assert 0 < len(lost) < len(whole) / 3
    assert all(one in whole for one in found if one[2] is not None)


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
def test_unreadable_metadata_is_told_and_not_needed(copy: Path, content: bytes) -> None:
    """BR-02, SE-01: one clear line, and nothing in it is run."""
    (copy / 'metadata.yaml').write_bytes(content)
    with Bag(copy) as bag:
        assert bag.num_messages == 5 * KEYFRAMES + 1
        assert bag.warnings == [
            'metadata.yaml is not the metadata of a bag; the files themselves are read'
        ]


def test_fewer_messages_than_the_metadata_say_are_told(copy: Path) -> None:
    text = (copy / 'metadata.yaml').read_text()
    (copy / 'metadata.yaml').write_text(text.replace('message_count: 1501', 'message_count: 1600'))
    with Bag(copy) as bag:
        assert bag.warnings == ['1600 messages were recorded, 1501 are readable']


def test_bag_without_messages_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / 'empty', version=9, storage_plugin=StoragePlugin.MCAP):
        pass
    assert str(tmp_path / 'empty') in _error(tmp_path / 'empty')


def test_single_file_of_a_bag_is_read_too(copy: Path) -> None:
    assert contents(_storage(copy)) == contents(copy)


def test_split_bag_is_read_file_after_file(tmp_path: Path) -> None:
    """Ten parts, of which the tenth is not the second."""
    parts = tmp_path / 'parts'
    parts.mkdir()
    for number in (0, 2, 10):
        shutil.copy(_storage(SHIPPED / NAMES[0]), parts / f'bag_{number}.mcap')
    assert [file.name for file in bag_files(parts)] == ['bag_0.mcap', 'bag_2.mcap', 'bag_10.mcap']
    with Bag(parts) as bag:
        assert bag.num_messages == 3 * (5 * KEYFRAMES + 1)


def test_free_disk_is_checked_before_unpacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-02: a bag that would fill the disk is refused, with the remedy."""
    folder = copied(tmp_path / 'bag', StoragePlugin.MCAP, CompressionMode.FILE)
    monkeypatch.setattr(compression, 'FREE_MARGIN_BYTES', 2**60)
    text = _error(folder)
    assert 'GB to be unpacked' in text
    assert 'TMPDIR' in text


def test_folder_of_several_bags_is_none_itself(tmp_path: Path) -> None:
    """Files of different names, as a folder of downloaded episodes holds them."""
    for name in ('fold_0', 'pour_0'):
        shutil.copy(_storage(SHIPPED / NAMES[0]), tmp_path / f'{name}.mcap')
    assert bag_files(tmp_path) == []
