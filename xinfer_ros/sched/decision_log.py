# SPDX-License-Identifier: Apache-2.0
"""
The format of a decision log: what a scheduler was told and what it decided.

A log has parts, each a file that can be read by itself. A part is a magic line and blocks. A block
is its kind, the length and the CRC-32 of its bytes, and these bytes. The first one is the header,
the second the state of the scheduler where the part begins; then come calls, and names of robots.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from xinfer_ros import _native
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration, calibration_text, parse_calibration
from xinfer_ros.sched.journal import Call, JournalReader
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import policy_settings

FORMAT = 1
MAGIC = b'xinfer decision log\n'
_BLOCK = struct.Struct('<BII')


class BlockKind(IntEnum):
    """What a block holds."""

    HEADER = 1
    STATE = 2
    CALLS = 3
    NAMES = 4
    END = 5  # the part was closed in order


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHeader:
    """
    What a log is a log of.

    :param policy: name of the scheduling policy
    :param settings: all of its settings, by name
    :param calibration: what the scheduler believes of the device
    :param model: name of the model
    :param date: day of the run, as 2026-01-31
    :param part: number of the part, from 1
    :param lost_bytes: of calls before this part that could not be written
    :param names: of robots by their number
    """

    policy: str
    settings: Mapping[str, Any]
    calibration: Calibration
    model: str
    date: str
    part: int = 1
    lost_bytes: int = 0
    names: Mapping[int, str] = field(default_factory=dict)

    def follows(self, before: 'LogHeader') -> bool:
        """Return whether nothing is missing between another part and this one."""
        return self.part == before.part + 1 and self.lost_bytes == before.lost_bytes

    def core(self) -> _native.Core:
        """Return a scheduler core that is made as the logged one was."""
        settings = policy_settings(self.policy, self.calibration, **self.settings)
        return native_core(self.calibration, settings)

    def to_bytes(self) -> bytes:
        """Return the bytes of its block."""
        values = {
            'format': FORMAT,
            **{
                name: getattr(self, name)
                for name in ('policy', 'settings', 'model', 'date', 'part', 'lost_bytes')
            },
            'names': dict(self.names),
            'calibration': calibration_text(self.calibration),
            'rates': self.calibration.rates.tolist(),  # to the last bit, which the text is not
        }
        return json.dumps(values).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> 'LogHeader':
        """
        Return the header that ``to_bytes`` has written.

        :raises ConfigError: if another version has written it
        """
        values = json.loads(payload)
        if values.pop('format') != FORMAT:
            raise ConfigError(f'another version has written it; this one reads format {FORMAT}')
        rates = np.array(values.pop('rates'), dtype=np.float64)
        calibration = parse_calibration(values.pop('calibration'), 'of the log')
        settings = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.pop('settings').items()
        }
        names = {int(number): name for number, name in values.pop('names').items()}
        calibration = replace(calibration, rates=rates)
        return cls(calibration=calibration, settings=settings, names=names, **values)


def block(kind: BlockKind, payload: bytes) -> bytes:
    """Return the bytes of a block."""
    return _BLOCK.pack(kind, len(payload), zlib.crc32(payload)) + payload


def part_head(header: LogHeader, state: bytes) -> bytes:
    """Return what a part begins with."""
    return MAGIC + block(BlockKind.HEADER, header.to_bytes()) + block(BlockKind.STATE, state)


def names_block(names: Mapping[int, str]) -> bytes:
    """Return a block that tells who robots are from here on."""
    return block(BlockKind.NAMES, json.dumps(dict(names)).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """
    One part of a log.

    :param state: of the scheduler where it begins, for ``restore`` of ``header.core()``
    :param pieces: of the journal, in their order
    :param names: of robots by their number, as told last
    :param torn_bytes: at the end, of a block that is cut off or damaged, and is left out
    :param is_closed: whether it was closed in order; else its writer was ended
    """

    header: LogHeader
    state: bytes
    pieces: tuple[bytes, ...]
    names: Mapping[int, str]
    torn_bytes: int
    is_closed: bool

    def calls(self) -> Iterator[Call]:
        """
        Yield every call.

        :raises ConfigError: if one cannot be read
        """
        reader = JournalReader()
        try:
            for piece in self.pieces:
                yield from reader.read(piece)
        except ValueError as error:
            raise ConfigError(f'a call in the log is damaged: {error}') from error


def read_part(data: bytes) -> LogPart:
    """
    Return the part that the bytes of a file hold.

    :raises ConfigError: if they hold none
    """
    if not data.startswith(MAGIC):
        raise ConfigError('it is no decision log; a server writes one with decision_log: FOLDER')
    blocks = list(_blocks(data, len(MAGIC)))
    kinds = [kind for kind, _, _ in blocks]
    if kinds[:2] != [BlockKind.HEADER, BlockKind.STATE]:
        raise ConfigError('it ends before the state of the scheduler: nothing can be read of it')
    try:
        header = LogHeader.from_bytes(blocks[0][1])
        names = dict(header.names)
        for kind, payload, _ in blocks:
            if kind == BlockKind.NAMES:
                names |= {int(number): name for number, name in json.loads(payload).items()}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f'its header is damaged: {error}') from error
    return LogPart(
        header=header,
        state=blocks[1][1],
        pieces=tuple(payload for kind, payload, _ in blocks if kind == BlockKind.CALLS),
        names=names,
        torn_bytes=len(data) - blocks[-1][2],
        is_closed=BlockKind.END in kinds,
    )


def _blocks(data: bytes, at: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield kind, payload and end of each whole block up to the first that is none."""
    while at + _BLOCK.size <= len(data):
        kind, length, checksum = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        payload = data[at : at + length]
        at += length
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        yield kind, payload, at
