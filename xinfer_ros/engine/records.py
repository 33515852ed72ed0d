# SPDX-License-Identifier: Apache-2.0
"""The small records that the front end and the engine process exchange; JSON, one a packet."""

import dataclasses
import json
from typing import Any, get_args

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Reason

MAX_RECORD_BYTES = 65536


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Front end: load the model now; until then the process only imports what it needs."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """Engine: the model is known; the descriptor of the slot memory travels with this record."""

    model: ModelContract
    num_slots: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Engine: every stage is warm."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """
    Front end: an observation has arrived and is being prepared; Submit follows, or nothing.

    :param robot: small number of the robot, 0, 1, ...
    :param arrival_ns: ``a``, on the server's monotonic clock [ns]
    :param budget_ns: response budget ``b`` [ns]
    :param period_ns: ``TE``, least time between two requests of the robot [ns]
    :param sight: what it says of the robot's action queue, None if nothing
    """

    robot: int
    arrival_ns: int
    budget_ns: int
    period_ns: int
    sight: QueueSight | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Front end: a request whose inputs lie in its slot."""

    request: Request


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Front end: nobody waits for this request any more; answered by Done or Dropped."""

    key: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget:
    """Front end: another response budget for a request that is under way [ns]."""

    key: int
    budget_ns: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """
    Engine: the actions lie in the request's slot. Times in ns; see core.chunk.ServerTimes.

    :param ask_after_ns: pace: how long after the arrival of this request the robot should ask
        again, 0 as it likes [ns]
    """

    key: int
    queue_ns: int
    vit_ns: int
    prefill_ns: int
    action_ns: int
    ask_after_ns: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """
    Engine: a sign of life, several times a second.

    :param oldest_unit_ns: how long the oldest unit has been in execution [ns]
    :param slowdown: work that units turn out to hold over the calibration's
    :param correction: the same for each stage
    :param mirror_error: mean error of the executed steps that were foreseen of robots [steps]
    """

    oldest_unit_ns: int
    slowdown: float
    correction: tuple[float, float, float]
    mirror_error: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Engine: the request ended without actions; its slot is free."""

    key: int
    reason: Reason
    detail: str


Record = Start | Contract | Ready | Beat | Announce | Submit | Cancel | SetBudget | Done | Dropped
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Record)}


def encode(record: Record) -> bytes:
    """Return a record as one packet."""
    fields = dataclasses.asdict(record)
    return json.dumps([type(record).__name__, fields], separators=(',', ':')).encode()


def decode(packet: bytes) -> Record:
    """
    Return the record in a packet.

    :raises ValueError: if it is none of ours, which means that the two processes differ in version
    """
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
    if kind is Announce and fields['sight'] is not None:
        fields['sight'] = QueueSight(**fields['sight'])
    if kind is Beat:
        fields['correction'] = tuple(fields['correction'])
    if kind is Submit:
        fields['request'] = Request(**fields['request'])
    if kind is Dropped:
        fields['reason'] = Reason(fields['reason'])
    record: Record = kind(**fields)
    return record
