# SPDX-License-Identifier: Apache-2.0
"""sqlite3 files as other versions of rosbag2 lay them out, and cut anywhere."""

import sqlite3
from pathlib import Path

import pytest

from xinfer_ros.episodes.storages.sqlite3 import Sqlite3File
from xinfer_ros.episodes.storages.sqlite3_pages import rows_of_pages
from xinfer_ros.errors import ConfigError

# from a message that fits into its cell to one that needs many further pages
SIZES = [20, 400, 4000, 4050, 4061, 4062, 5000, 9000, 200_000, 10]
MESSAGES = [(10**18 + number, bytes([number]) * size) for number, size in enumerate(SIZES * 4)]


def _file(path: Path, *, page_size: int = 4096) -> Path:
    """Write a bag of ROS 2 Foxy: no hashes, no definitions."""
    base = sqlite3.connect(path)
    base.execute(f'PRAGMA page_size={page_size}')
    base.executescript(
        'CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,'
        ' serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);'
        'CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,'
        ' timestamp INTEGER NOT NULL, data BLOB NOT NULL);'
        'CREATE INDEX timestamp_idx ON messages (timestamp ASC);'
        "INSERT INTO topics VALUES(1, '/a', 'std_msgs/msg/String', 'cdr', '');"
        "INSERT INTO topics VALUES(300, '/b', 'std_msgs/msg/String', 'cdr', '');"
    )
    for number, (time_ns, data) in enumerate(MESSAGES):
        base.execute(
            'INSERT INTO messages (topic_id, timestamp, data) VALUES(?, ?, ?)',
            ([1, 300][number % 2], time_ns, data),
        )
    base.commit()
    base.close()
    return path


def _messages(file: Sqlite3File) -> list[tuple[int, bytes]]:
    return [(int(time_ns), file.data(index)) for index, time_ns in enumerate(file.times_ns)]


def test_old_layout_is_read(tmp_path: Path) -> None:
    file = Sqlite3File(_file(tmp_path / 'a.db3'))
    assert [(topic.name, topic.type_hash) for topic in file.topics] == [('/a', None), ('/b', None)]
    assert _messages(file) == MESSAGES
    assert file.topic_ids.tolist() == [0, 1] * 20
    file.close()


@pytest.mark.parametrize('page_size', [512, 4096, 65536])
def test_pages_alone_tell_every_message(tmp_path: Path, page_size: int) -> None:
    path = _file(tmp_path / 'a.db3', page_size=page_size)
    found = sorted((row.time_ns, row.data(path)) for row in rows_of_pages(path))
    assert found == MESSAGES


@pytest.mark.parametrize('share', [30, 50, 70, 90, 99])
def test_every_cut_gives_a_beginning_of_the_messages(tmp_path: Path, share: int) -> None:
    """BR-02 (b)."""
    path = _file(tmp_path / 'a.db3')
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * share // 100])
    file = Sqlite3File(path)
    found = _messages(file)
    assert 0 < len(found) < len(MESSAGES)
    assert set(found) <= set(MESSAGES)
    assert list(file.warnings) == [f'a.db3 is cut short: {len(found)} whole messages']
    file.close()


def test_reading_creates_nothing_beside_the_file(tmp_path: Path) -> None:
    file = Sqlite3File(_file(tmp_path / 'a.db3'))
    _messages(file)
    assert [path.name for path in tmp_path.iterdir()] == ['a.db3']
    file.close()


@pytest.mark.parametrize('content', [b'', b'text', b'SQLite format 3\0' + b'x' * 500])
def test_other_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / 'a.db3').write_bytes(content)
    with pytest.raises(ConfigError, match=r'a\.db3'):
        Sqlite3File(tmp_path / 'a.db3')


def test_database_of_something_else_is_refused(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / 'a.db3')
    base.execute('CREATE TABLE things(id INTEGER)')
    base.commit()
    base.close()
    with pytest.raises(ConfigError, match='no bag of rosbag2'):
        Sqlite3File(tmp_path / 'a.db3')
