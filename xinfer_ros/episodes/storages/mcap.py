# SPDX-License-Identifier: Apache-2.0
"""MCAP files of a bag, by their summary or, if that is missing, record by record."""

import struct
from collections import OrderedDict
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import ChunkIndex, Footer, Statistics

from xinfer_ros.episodes.compression import DamageError
from xinfer_ros.episodes.storages.mcap_records import (
    HEAD_BYTES,
    MAGIC,
    MESSAGE_HEAD_BYTES,
    Channels,
    Record,
    body,
    chunk_records,
    message_head,
    message_index,
    records,
)
from xinfer_ros.errors import ConfigError

_FOOTER_BYTES = HEAD_BYTES + 20
_CACHED_CHUNKS = 4
_NO_CHUNK = -1
_LATEST_NS = 2**63 - 1


class McapFile:
    """
    An MCAP file.

    :param path: of the file
    :raises ConfigError: if it is none
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open('rb')
        self._end = path.stat().st_size
        self._channels = Channels()
        self.warnings: list[str] = []
        self._chunks: OrderedDict[int, bytes] = OrderedDict()
        self._damaged: set[int] = set()
        if self._file.read(len(MAGIC)) != MAGIC:
            self.close()
            raise ConfigError(f'{path}: it is no MCAP file')
        try:
            rows = self._by_summary()
        except (McapError, struct.error, ValueError):  # a summary that is damaged
            rows = None
        if rows is None:
            self._channels = Channels()
            rows = self._by_records()
        self.topics = self._channels.topics()
        places = self._channels.places()
        self.topic_ids = np.array([places[int(row)] for row in rows[:, 1]], np.int32)
        self.times_ns = rows[:, 0]
        self._where = rows[:, 2:]

    def data(self, index: int) -> bytes:
        """
        Return a message as it was stored.

        :raises DamageError: if its bytes are not what was written
        """
        start, offset = map(int, self._where[index])
        if start == _NO_CHUNK:
            (record,) = self._first(self._file, offset, self._end)
            return body(self._file, record)[MESSAGE_HEAD_BYTES:]
        chunk = self._chunk(start)
        (record,) = self._first(BytesIO(chunk), offset, len(chunk))
        return chunk[record.start + MESSAGE_HEAD_BYTES : record.start + record.size]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @staticmethod
    def _first(stream: object, start: int, end: int) -> Sequence[Record]:
        for record in records(stream, start, end):  # type: ignore[arg-type]
            if record.opcode == Opcode.MESSAGE and record.whole:
                return (record,)
            break
        raise DamageError(f'no message at {start}')

    def _chunk(self, start: int) -> bytes:
        if start in self._damaged:
            raise DamageError(f'the chunk at {start}')
        if start not in self._chunks:
            record = next(records(self._file, start, self._end))
            try:
                self._chunks[start] = chunk_records(body(self._file, record), record.whole)
            except DamageError:
                self._damaged.add(start)
                raise
            while len(self._chunks) > _CACHED_CHUNKS:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(start)
        return self._chunks[start]

    def _by_summary(self) -> npt.NDArray[np.int64] | None:
        """Return rows of time, channel, chunk and offset; None if the summary does not tell."""
        self._file.seek(max(self._end - len(MAGIC), 0))
        if self._file.read() != MAGIC or self._end < 2 * len(MAGIC) + _FOOTER_BYTES:
            return None
        footer = next(records(self._file, self._end - len(MAGIC) - _FOOTER_BYTES, self._end))
        if footer.opcode != Opcode.FOOTER:
            return None
        start = Footer.read(ReadDataStream(BytesIO(body(self._file, footer)))).summary_start
        if not start:
            return None
        chunks: list[ChunkIndex] = []
        expected: int | None = None
        for record in records(self._file, start, footer.start - HEAD_BYTES):
            data = body(self._file, record)
            self._channels.take(record.opcode, data)
            if record.opcode == Opcode.CHUNK_INDEX:
                chunks.append(ChunkIndex.read(ReadDataStream(BytesIO(data))))
            elif record.opcode == Opcode.STATISTICS:
                expected = Statistics.read(ReadDataStream(BytesIO(data))).message_count
        rows = _joined([self._indexed(chunk) for chunk in chunks])
        known = set(self._channels.places())
        if len(rows) != expected or not known.issuperset(np.unique(rows[:, 1]).tolist()):
            return None
        return rows

    def _indexed(self, chunk: ChunkIndex) -> npt.NDArray[np.int64]:
        start = chunk.chunk_start_offset + chunk.chunk_length
        parts = []
        for record in records(self._file, start, start + chunk.message_index_length):
            if record.opcode == Opcode.MESSAGE_INDEX and record.whole:
                channel, rows = message_index(body(self._file, record))
                part = np.empty((len(rows), 4), np.int64)
                part[:, 0], part[:, 1] = rows[:, 0], channel
                part[:, 2], part[:, 3] = chunk.chunk_start_offset, rows[:, 1]
                parts.append(part)
        rows = _joined(parts)
        if np.any((rows[:, 0] < chunk.message_start_time) | (rows[:, 0] > chunk.message_end_time)):
            raise ValueError('an index that does not suit its chunk')
        return rows[np.argsort(rows[:, 3], kind='stable')]

    def _by_records(self) -> npt.NDArray[np.int64]:
        """Return the same by reading every record; keep the messages that are whole."""
        rows: list[tuple[int, int, int, int]] = []
        cut, damaged, ended = False, 0, False
        for record in records(self._file, len(MAGIC), self._end):
            cut |= not record.whole
            if record.opcode == Opcode.CHUNK:
                place = record.start - HEAD_BYTES
                try:
                    inner = chunk_records(body(self._file, record), record.whole)
                except DamageError:
                    damaged += 1
                    continue
                rows += self._messages(BytesIO(inner), 0, len(inner), place)
            elif record.whole and record.opcode == Opcode.MESSAGE:
                place = record.start - HEAD_BYTES
                end = record.start + record.size
                rows += self._messages(self._file, place, end, _NO_CHUNK)
            elif record.whole:
                ended |= record.opcode in (Opcode.DATA_END, Opcode.FOOTER)
                self._channels.take(record.opcode, body(self._file, record))
            if ended:
                break
        if cut or not ended:
            self.warnings.append(f'{self._path.name} is cut short: {len(rows)} whole messages')
        if damaged:
            self.warnings.append(f'{self._path.name}: {damaged} damaged chunks are left out')
        return np.array(rows, np.int64).reshape(-1, 4)

    def _messages(
        self, stream: object, start: int, end: int, chunk: int
    ) -> list[tuple[int, int, int, int]]:
        found = []
        for record in records(stream, start, end):  # type: ignore[arg-type]
            if not record.whole:
                break
            data = body(stream, record)  # type: ignore[arg-type]
            self._channels.take(record.opcode, data)
            if record.opcode == Opcode.MESSAGE and record.size >= MESSAGE_HEAD_BYTES:
                channel, time_ns = message_head(data)
                if self._channels.knows(channel) and time_ns <= _LATEST_NS:
                    found.append((time_ns, channel, chunk, record.start - HEAD_BYTES))
        return found


def _joined(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.empty((0, 4), np.int64), *parts])
