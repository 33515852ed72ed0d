# SPDX-License-Identifier: Apache-2.0
"""
Rows of the table ``messages`` in a sqlite3 file that sqlite itself cannot read any more.

Every page that is there is looked at. A page of rows holds cells; what does not fit into a cell
goes on in a chain of overflow pages. Source: the file format of sqlite, sections 1.5 to 1.6.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from xinfer_ros.episodes.compression import MAX_UNPACKED_BYTES, DamageError

_LEAF_OF_TABLE = 0x0D
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
_LARGEST_HEAD = 64
_HEAD_BYTES = 100  # of the file
_LEAST_USABLE = 480  # of a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A message in a page.

    :param number: its id
    :param topic_id: of its topic
    :param time_ns: when it was received [ns]
    :param skip: bytes of the payload before the message
    :param size: of the payload [bytes]
    :param page_size: of the file [bytes]
    :param parts: where the payload lies: place and length in the file [bytes]
    """

    number: int
    topic_id: int
    time_ns: int
    skip: int
    size: int
    parts: tuple[tuple[int, int], ...]

    def data(self, path: Path) -> bytes:
        """
        Return the message.

        :raises DamageError: if it can't be read
        """
        with path.open('rb') as file:
            pieces = []
            for start, length in self.parts:
                file.seek(start)
                pieces.append(file.read(length))
        payload = b''.join(pieces)
        if len(payload) != self.size:
            raise DamageError(f'message {self.number} has {len(payload)} of {self.size} bytes')
        return payload[self.skip :]


def is_whole(path: Path) -> bool:
    """Return whether a file has as many pages as it says."""
    with path.open('rb') as file:
        head = file.read(_HEAD_BYTES)
    return path.stat().st_size >= _page_size(head) * int.from_bytes(head[28:32], 'big')


def rows_of_pages(path: Path) -> Iterator[Row]:
    """Yield the messages that are whole, in the order of their pages."""
    end = path.stat().st_size
    with path.open('rb') as file:
        head = file.read(_HEAD_BYTES)
        page_size = _page_size(head)
        if len(head) < _HEAD_BYTES or page_size - head[20] < _LEAST_USABLE:
            return
        usable = page_size - head[20]
        for number in range(end // page_size):
            file.seek(number * page_size)
            page = file.read(page_size)
            start = _HEAD_BYTES if number == 0 else 0
            if page[start] == _LEAF_OF_TABLE:
                yield from _Page(file, page, number, page_size, usable, end).rows(start)


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], 'big')
    return 65536 if size == 1 else size


class _Page:
    """A page of rows."""

    def __init__(
        self, file: BinaryIO, page: bytes, number: int, page_size: int, usable: int, end: int
    ) -> None:
        self._file, self._page, self._number = file, page, number
        self._page_size, self._usable, self._end = page_size, usable, end

    def rows(self, start: int) -> Iterator[Row]:
        (count,) = struct.unpack_from('>H', self._page, start + 3)
        for index in range(min(count, (self._page_size - start - 8) // 2)):
            (cell,) = struct.unpack_from('>H', self._page, start + 8 + 2 * index)
            row = self._row(cell)
            if row is not None:
                yield row

    def _row(self, cell: int) -> Row | None:
        try:
            size, place = _varint(self._page, cell)
            number, place = _varint(self._page, place)
            head, place_of_values = self._head(place)
            topic_id, time_ns, skip = _values(head, self._page, place_of_values, place)
        except (IndexError, KeyError, ValueError):
            return None
        if size > MAX_UNPACKED_BYTES:
            return None
        parts = self._parts(size, place)
        if sum(length for _, length in parts) != size:
            return None
        return Row(
            number=number, topic_id=topic_id, time_ns=time_ns, skip=skip, size=size, parts=parts
        )

    def _head(self, place: int) -> tuple[list[int], int]:
        """Return the types of the columns, and where the values begin."""
        length, at = _varint(self._page, place)
        if length > _LARGEST_HEAD:
            raise ValueError(length)
        types = []
        while at < place + length:
            kind, at = _varint(self._page, at)
            types.append(kind)
        return types, place + length

    def _parts(self, size: int, place: int) -> tuple[tuple[int, int], ...]:
        """Return where the payload lies, as far as it is there."""
        local = self._local(size)
        base = self._number * self._page_size
        parts = [(base + place, local)]
        rest = size - local
        following = int.from_bytes(self._page[place + local : place + local + 4], 'big')
        while rest and following and following * self._page_size <= self._end:
            start = (following - 1) * self._page_size
            self._file.seek(start)
            following = int.from_bytes(self._file.read(4), 'big')
            length = min(rest, self._usable - 4)
            parts.append((start + 4, length))
            rest -= length
        return tuple(parts)

    def _local(self, size: int) -> int:
        """Return how much of a payload stands in the page of its cell."""
        most = self._usable - 35
        if size <= most:
            return size
        least = (self._usable - 12) * 32 // 255 - 23
        wanted = least + (size - least) % (self._usable - 4)
        return wanted if wanted <= most else least


def _values(types: list[int], page: bytes, at: int, start: int) -> tuple[int, int, int]:
    """Return topic and time of a message, and how many bytes of the payload precede its data."""
    number, topic, time, data = types  # the id stands in the cell; its column is NULL
    if number != 0 or data < 12 or data % 2:
        raise ValueError(types)
    topic_id, at = _integer(topic, page, at)
    time_ns, at = _integer(time, page, at)
    return topic_id, time_ns, at - start


def _integer(kind: int, page: bytes, at: int) -> tuple[int, int]:
    length = _INTEGER_BYTES[kind]
    if length == 0:
        return kind - 8, at
    return int.from_bytes(page[at : at + length], 'big', signed=True), at + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[at + index]
        if index == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError(at)
