# SPDX-License-Identifier: Apache-2.0
"""Records of an MCAP file: found one after the other, whole or cut short."""

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Schema

from xinfer_ros.episodes.compression import DamageError, unpacked_chunk, unpacked_part
from xinfer_ros.episodes.topic import RecordedTopic

MAGIC = b'\x89MCAP0\r\n'
HEAD_BYTES = 9  # opcode and length
MESSAGE_HEAD_BYTES = 22  # channel, sequence and two times
_HEAD = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<HIQ')
_CHUNK = struct.Struct('<QQQI')


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    Where a record lies.

    :param opcode: its kind
    :param start: of its body, in the file or chunk [bytes]
    :param size: of its body [bytes]
    :param whole: whether all of it is there
    """

    opcode: int
    start: int
    size: int
    whole: bool


def records(stream: BinaryIO, start: int, end: int) -> Iterator[Record]:
    """
    Yield the records between two places of a file, the last of them perhaps cut short.

    :param stream: a file, or bytes as one; its position is changed
    :param start: where the first begins [bytes]
    :param end: where to stop [bytes]
    """
    while 0 <= start <= end - HEAD_BYTES:
        stream.seek(start)
        opcode, size = _HEAD.unpack(stream.read(HEAD_BYTES))
        start += HEAD_BYTES
        whole = start + size <= end
        yield Record(opcode=opcode, start=start, size=size if whole else end - start, whole=whole)
        start += size


def body(stream: BinaryIO, record: Record) -> bytes:
    """Return the bytes of a record."""
    stream.seek(record.start)
    return stream.read(record.size)


def chunk_records(data: bytes, whole: bool) -> bytes:
    """
    Return the records within a chunk.

    :param data: body of the chunk
    :param whole: whether all of it is there; if not, what can be had is returned
    :raises DamageError: if a whole one can't be unpacked
    """
    if len(data) < _CHUNK.size + 4:
        return b''
    _, _, size, checksum = _CHUNK.unpack_from(data)
    place = _CHUNK.size
    (length,) = struct.unpack_from('<I', data, place)
    compression = data[place + 4 : place + 4 + length].decode(errors='replace')
    packed = data[place + 4 + length + 8 :]
    if not whole:
        return unpacked_part(packed, compression)
    found = unpacked_chunk(packed, compression, size, checksum)
    # many a writer leaves the checksum out; damage shows in the lengths of the records then
    if not checksum and not _is_chain(found):
        raise DamageError('a chunk whose records do not follow each other')
    return found


def _is_chain(data: bytes) -> bool:
    """Return whether records fill some bytes to their end."""
    place = 0
    while place + HEAD_BYTES <= len(data):
        place += HEAD_BYTES + int.from_bytes(data[place + 1 : place + HEAD_BYTES], 'little')
    return place == len(data)


def message_head(data: bytes) -> tuple[int, int]:
    """Return the channel and the log time [ns] of a message."""
    channel, _, time_ns = _MESSAGE.unpack_from(data)
    return channel, time_ns


def message_index(data: bytes) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the channel of an index record, and its rows of time [ns] and offset ``(n, 2)``."""
    channel, length = struct.unpack_from('<HI', data)
    rows = np.frombuffer(data, dtype='<i8', offset=6, count=length // 8).reshape(-1, 2)
    return channel, rows


class Channels:
    """The channels that were met, as topics."""

    def __init__(self) -> None:
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}

    def take(self, opcode: int, data: bytes) -> None:
        """Take in a schema or channel record; others, and damaged ones, are ignored."""
        with contextlib.suppress(McapError, struct.error, ValueError):
            self._take(opcode, data)

    def _take(self, opcode: int, data: bytes) -> None:
        if opcode == Opcode.SCHEMA:
            schema = Schema.read(ReadDataStream(BytesIO(data)))
            self._schemas[schema.id] = schema
        elif opcode == Opcode.CHANNEL:
            channel = Channel.read(ReadDataStream(BytesIO(data)))
            self._channels[channel.id] = channel

    def knows(self, channel: int) -> bool:
        """Return whether a channel was met."""
        return channel in self._channels

    def places(self) -> dict[int, int]:
        """Return the place of each channel's topic in ``topics``."""
        return {number: place for place, number in enumerate(sorted(self._channels))}

    def topics(self) -> tuple[RecordedTopic, ...]:
        """Return the topics."""
        return tuple(self._topic(self._channels[number]) for number in sorted(self._channels))

    def _topic(self, channel: Channel) -> RecordedTopic:
        schema = self._schemas.get(channel.schema_id)
        text = schema.data.decode(errors='replace') if schema is not None else ''
        return RecordedTopic(
            name=channel.topic,
            type_name=schema.name if schema is not None else '',
            type_hash=channel.metadata.get('topic_type_hash') or None,
            definition=text if schema is not None and schema.encoding == 'ros2msg' else '',
            qos=channel.metadata.get('offered_qos_profiles', ''),
        )
