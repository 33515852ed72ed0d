# SPDX-License-Identifier: Apache-2.0
"""MCAP files as other writers lay them out: without chunks, without indexes, lz4, checksums."""

from io import BytesIO
from pathlib import Path

import pytest
from mcap.writer import CompressionType, IndexType, Writer

from xinfer_ros.episodes.storages.mcap import McapFile
from xinfer_ros.errors import ConfigError

MESSAGES = [(10 * number, f'message {number}'.encode() * 20) for number in range(50)]


def _file(path: Path, **settings: object) -> Path:
    buffer = BytesIO()
    writer = Writer(buffer, chunk_size=1024, **settings)  # type: ignore[arg-type]
    writer.start('ros2')
    schema = writer.register_schema('std_msgs/msg/String', 'ros2msg', b'string data')
    channels = [
        writer.register_channel(
            topic, 'cdr', schema, {'topic_type_hash': 'RIHS01_1', 'offered_qos_profiles': ''}
        )
        for topic in ('/a', '/b')
    ]
    for number, (time_ns, data) in enumerate(MESSAGES):
        writer.add_message(channels[number % 2], time_ns, data, time_ns)
    writer.finish()
    path.write_bytes(buffer.getvalue())
    return path


def _check(path: Path) -> None:
    file = McapFile(path)
    assert [topic.name for topic in file.topics] == ['/a', '/b']
    assert file.topics[0].type_hash == 'RIHS01_1'
    found = [(int(t), file.data(index)) for index, t in enumerate(file.times_ns)]
    assert found == MESSAGES
    assert file.topic_ids.tolist() == [0, 1] * 25
    assert list(file.warnings) == []
    file.close()


@pytest.mark.parametrize('compression', list(CompressionType))
@pytest.mark.parametrize('chunked', [True, False])
def test_every_layout_is_read(tmp_path: Path, compression: CompressionType, chunked: bool) -> None:
    _check(_file(tmp_path / 'a.mcap', compression=compression, use_chunking=chunked))


@pytest.mark.parametrize('index', [IndexType.NONE, IndexType.CHUNK, IndexType.MESSAGE])
def test_missing_indexes_are_made_up_for(tmp_path: Path, index: IndexType) -> None:
    _check(_file(tmp_path / 'a.mcap', index_types=index))


@pytest.mark.parametrize(
    'off', ['use_statistics', 'use_summary_offsets', 'repeat_channels', 'repeat_schemas']
)
def test_thin_summary_is_made_up_for(tmp_path: Path, off: str) -> None:
    _check(_file(tmp_path / 'a.mcap', **{off: False}))


def test_every_cut_gives_a_beginning_of_the_messages(tmp_path: Path) -> None:
    """BR-02 (b): wherever the power went away."""
    data = _file(tmp_path / 'a.mcap', compression=CompressionType.LZ4).read_bytes()
    counts = []
    for end in range(8, len(data), 37):
        (tmp_path / 'cut.mcap').write_bytes(data[:end])
        file = McapFile(tmp_path / 'cut.mcap')
        found = [(int(t), file.data(index)) for index, t in enumerate(file.times_ns)]
        assert found == MESSAGES[: len(found)]
        counts.append(len(found))
        file.close()
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == len(MESSAGES)


def test_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'a.mcap').write_bytes(b'no MCAP at all')
    with pytest.raises(ConfigError, match='it is no MCAP file'):
        McapFile(tmp_path / 'a.mcap')
