# SPDX-License-Identifier: Apache-2.0
"""Records as packets: plain numbers for the three that every request takes, JSON for the rest."""

import dataclasses
import json
import struct
from operator import attrgetter
from typing import Any, get_args

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.records import (
    Announce,
    Beat,
    Contract,
    Done,
    Dropped,
    Record,
    Submit,
)
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.errors import Reason

MAX_RECORD_BYTES = 65536
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Record)}


class _Numbers:
    """
    The integer fields of a class as a packet.

    :param tag: first byte of the packet; none is the bracket with which JSON begins
    :param kind: a dataclass; all of its fields are integers, but for those left out
    :param left_out: names of fields that travel otherwise
    """

    def __init__(self, tag: int, kind: type[Any], *left_out: str) -> None:
        names = [f.name for f in dataclasses.fields(kind) if f.name not in left_out]
        self.tag, self._names, self._values = tag, names, attrgetter(*names)
        self._layout = struct.Struct(f'<B{len(names)}q')

    def pack(self, record: object) -> bytes:
        """Return the numbers of a record."""
        return self._layout.pack(self.tag, *self._values(record))

    def unpack(self, packet: bytes) -> dict[str, int]:
        """Return them by the name of their field; what follows in the packet is ignored."""
        return dict(zip(self._names, self._layout.unpack_from(packet)[1:], strict=True))

    @property
    def size(self) -> int:
        """Return how long they are [bytes]."""
        return self._layout.size


_ANNOUNCE, _SIGHT = _Numbers(1, Announce, 'sight'), _Numbers(2, QueueSight)
_REQUEST, _DONE = _Numbers(3, Request), _Numbers(4, Done)


def encode(record: Record) -> bytes:
    """Return a record as one packet."""
    if isinstance(record, Announce):
        packet = _ANNOUNCE.pack(record)
        return packet if record.sight is None else packet + _SIGHT.pack(record.sight)
    if isinstance(record, Submit):
        return _REQUEST.pack(record.request)
    if isinstance(record, Done):
        return _DONE.pack(record)
    fields = dataclasses.asdict(record)
    return json.dumps([type(record).__name__, fields], separators=(',', ':')).encode()


def decode(packet: bytes) -> Record:
    """
    Return the record in a packet.

    :raises ValueError: if it is none of ours, which means that the two processes differ in version
    """
    tag = packet[0]
    if tag == _ANNOUNCE.tag:
        rest = packet[_ANNOUNCE.size :]
        sight = QueueSight(**_SIGHT.unpack(rest)) if rest else None
        return Announce(**_ANNOUNCE.unpack(packet), sight=sight)
    if tag == _REQUEST.tag:
        return Submit(request=Request(**_REQUEST.unpack(packet)))
    if tag == _DONE.tag:
        return Done(**_DONE.unpack(packet))
    return _from_json(packet)


def _from_json(packet: bytes) -> Record:
    name, fields = json.loads(packet)
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f'unknown record {name!r}; known: {", ".join(_KINDS)}')
    if kind is Contract:
        model = fields['model']
        model['cameras'] = tuple(CameraSpec(**camera) for camera in model['cameras'])
        model['joint_names'] = tuple(model['joint_names'])
        model['stages'] = tuple(Stage(stage) for stage in model['stages'])
        fields['model'] = ModelContract(**model)
    if kind is Beat:
        for entry in ('correction', 'busy_ns', 'running', 'waiting', 'verdicts'):
            fields[entry] = tuple(fields[entry])
    if kind is Timeline:
        return Timeline.of(fields)
    if kind is Dropped:
        fields['reason'] = Reason(fields['reason'])
    record: Record = kind(**fields)
    return record
