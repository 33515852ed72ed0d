# SPDX-License-Identifier: Apache-2.0
"""What happened in a run, told from its decision log: requests, units and decisions."""

from dataclasses import dataclass
from enum import Enum

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.decision import Decision


class Outcome(Enum):
    """How a request ended."""

    ANSWERED = 'answered'
    EXPIRED = 'expired: its robot had given it up'
    SUPERSEDED = 'superseded by a newer one of its robot'
    STOPPED = 'stopped: nobody waited for it any more, or the model refused it'
    FAILED = 'failed with its unit'


@dataclass(slots=True, kw_only=True)
class LoggedRequest:
    """
    A request as far as the log has told of it.

    :param deadline_ns: ``a + b - delta`` [ns]
    :param stage: that it waits for, or that runs
    :param ready_ns: since when it waits for that stage, or has waited until it ran [ns]
    :param unit: that it runs in
    """

    key: int
    robot: int
    arrival_ns: int
    budget_ns: int
    deadline_ns: int
    ready_ns: int
    stage: Stage = Stage.VIT
    unit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedUnit:
    """
    A unit as it started.

    :param foreseen_end_ns: when it was predicted to end [ns]
    :param protected: whether the policy shielded one of its requests
    """

    number: int
    stage: Stage
    requests: tuple[LoggedRequest, ...]
    started_ns: int
    foreseen_end_ns: int
    protected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A request was registered; its slack beside what ran then [ms]."""

    at_ns: int
    request: LoggedRequest
    slack_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """
    Another decision about a request than the one before; what is only repeated is left out.

    :param slack_ms: of this request right after it [ms]
    :param against: robot of the request that the decision is about, if it is one
    """

    at_ns: int
    request: LoggedRequest
    decision: Decision
    slack_ms: float
    against: LoggedRequest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStarted:
    """A lane was given a unit."""

    at_ns: int
    unit: LoggedUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEnded:
    """A unit was seen to end, well or not."""

    at_ns: int
    unit: LoggedUnit
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChanged:
    """A request has another response budget; it has it already."""

    at_ns: int
    request: LoggedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """
    A request is gone.

    :param pace_ns: time after its arrival at which the robot was asked to come back, 0 if it was
        left to it [ns]
    """

    at_ns: int
    request: LoggedRequest
    outcome: Outcome
    pace_ns: int = 0

    @property
    def late_ns(self) -> int:
        """Return by how much it missed its deadline, less than 0 if it did not [ns]."""
        return self.at_ns - self.request.deadline_ns

    @property
    def is_late(self) -> bool:
        """Return whether its robot got no answer within the deadline."""
        return self.outcome is not Outcome.SUPERSEDED and self.late_ns > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What waits and runs after a ``dispatch``, if it has changed; by stage."""

    at_ns: int
    waiting: tuple[int, int, int]
    running: tuple[int, int, int]
    protected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Calls before this are missing in the log: what was live then is not followed any more."""

    at_ns: int


RunEvent = (
    Submitted | Decided | UnitStarted | UnitEnded | BudgetChanged | Ended | Counted | Missing
)
