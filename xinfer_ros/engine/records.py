# SPDX-License-Identifier: Apache-2.0
"""The small records that the front end and the engine process exchange; JSON, one a packet."""

import dataclasses
import json
from typing import Any, get_args

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.request import Request
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import Calibration, load_calibration

MAX_RECORD_BYTES = 65536
SPARE_SLOTS = 4  # for requests that were superseded while they ran


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """
    What the engine process is told at its start.

    :param model: name of the model
    :param model_seed: seed of random weights
    :param scheduling_policy: name of the scheduling policy
    :param calibration: of the device: a shipped name or a file
    :param reserved_ns: part of every budget kept for what happens outside the server [ns]
    :param num_slots: slots to allocate
    :param torch_threads: CPU threads of one stage
    :param spare: whether a second process waits with everything imported, for a quick restart
    """

    model: str
    model_seed: int
    scheduling_policy: str
    calibration: str
    reserved_ns: int
    num_slots: int
    torch_threads: int
    spare: bool

    @classmethod
    def from_config(cls, config: ServerConfig) -> 'EngineSettings':
        """Return the engine's part of the server's settings."""
        return cls(
            model=config.model,
            model_seed=config.model_seed,
            scheduling_policy=config.scheduling_policy,
            calibration=config.calibration or config.model,
            reserved_ns=round(config.reserved_s * 1e9),
            num_slots=config.max_robots + SPARE_SLOTS,
            torch_threads=config.torch_threads,
            spare=config.spare_engine,
        )

    def device(self) -> Calibration:
        """
        Return the calibration as the lanes use it: one unit of each stage at once.

        :raises ConfigError: if there is none, or it is not good
        """
        calibration = load_calibration(self.calibration)
        return dataclasses.replace(
            calibration,
            reserved_ms=self.reserved_ns / 1e6,
            rates=calibration.rates[:, :2, :2, :2],
        )


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
    """

    robot: int
    arrival_ns: int
    budget_ns: int
    period_ns: int


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
    """

    oldest_unit_ns: int
    slowdown: float


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
        fields['model'] = ModelContract(**model)
    if kind is Submit:
        fields['request'] = Request(**fields['request'])
    if kind is Dropped:
        fields['reason'] = Reason(fields['reason'])
    record: Record = kind(**fields)
    return record
