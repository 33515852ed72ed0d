# SPDX-License-Identifier: Apache-2.0
"""The small records that the front end and the engine process exchange; one a packet."""

import dataclasses

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.engine.seen import Named, Timeline, Watch
from xinfer_ros.errors import Reason


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
    :param busy_ns: time since the engine began in which a unit of each stage was in execution [ns]
    :param running: units of each stage in execution
    :param waiting: requests that wait for each stage
    :param protected: live requests that the scheduling policy shields
    :param verdicts: decisions since the engine began, by ``sched.decision.Verdict``; what is only
        said again of the same stage of a request counts once
    :param prediction_error_ns: sum of the differences between the end of a unit as it was
        predicted when it started and the end that was seen, since the engine began [ns]
    :param predictions: units in that sum
    """

    oldest_unit_ns: int
    slowdown: float
    correction: tuple[float, float, float]
    mirror_error: float
    busy_ns: tuple[int, int, int] = (0, 0, 0)
    running: tuple[int, int, int] = (0, 0, 0)
    waiting: tuple[int, int, int] = (0, 0, 0)
    protected: int = 0
    verdicts: tuple[int, ...] = (0,) * 8
    prediction_error_ns: int = 0
    predictions: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Engine: the request ended without actions; its slot is free."""

    key: int
    reason: Reason
    detail: str


Record = (
    Start | Contract | Ready | Beat | Announce | Submit | Cancel | SetBudget | Done | Dropped
    | Named | Watch | Timeline
)  # fmt: skip
