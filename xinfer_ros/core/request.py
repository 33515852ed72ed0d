# SPDX-License-Identifier: Apache-2.0
"""What the scheduler knows of a request, and what it issues: units."""

from dataclasses import dataclass

from xinfer_ros.config import MAX_BUDGET_S
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Reason, Rejected

RETRY_FLOOR_NS = 500_000_000
MIN_BUDGET_NS = 1_000_000
MAX_BUDGET_NS = int(MAX_BUDGET_S * 1e9)


def check_budget(budget_ns: int) -> None:
    """
    Refuse a response budget that can't be meant.

    :raises Rejected: REJECTED_BUDGET
    """
    if not MIN_BUDGET_NS <= budget_ns <= MAX_BUDGET_NS:
        raise Rejected(
            Reason.REJECTED_BUDGET,
            f'a response budget of {budget_ns} ns; {MIN_BUDGET_NS} to {MAX_BUDGET_NS} is allowed',
        )


def retry_after_ns(budget_ns: int) -> int:
    """
    Return the age at which a request is given up by its robot and dropped by the server [ns].

    Twice the response budget, at least half a second.

    :param budget_ns: response budget ``b`` [ns]
    """
    return max(2 * budget_ns, RETRY_FLOOR_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    One request inside the server.

    :param key: unique in one engine life, rising with arrival
    :param robot: small number of the robot, 0, 1, ...
    :param slot: the reserved device state
    :param arrival_ns: ``a``, on the server's monotonic clock [ns]
    :param budget_ns: response budget ``b`` [ns]
    :param reserved_ns: part of the budget kept for what happens outside the server, delta [ns]
    :param period_ns: ``TE``, least time between two requests of the robot [ns]
    """

    key: int
    robot: int
    slot: int
    arrival_ns: int
    budget_ns: int
    reserved_ns: int
    period_ns: int

    @property
    def deadline_ns(self) -> int:
        """Return the deadline ``a + b - delta`` on the server's monotonic clock [ns]."""
        return self.arrival_ns + self.budget_ns - self.reserved_ns

    @property
    def expires_ns(self) -> int:
        """Return when the robot has given up and an answer is useless [ns]."""
        return self.arrival_ns + retry_after_ns(self.budget_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSight:
    """
    What an observation says of the action queue of its robot.

    :param executed_steps: rows that the robot has consumed since its session began [steps]
    :param leftover_steps: rows that it may still execute [steps]
    :param horizon_steps: rows that a fresh chunk is good for, 0 if that is not known [steps]
    :param spacing_ns: of its rows, 0 if that is not known [ns]
    """

    executed_steps: int
    leftover_steps: int
    horizon_steps: int
    spacing_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """
    One dispatch: one stage of one or more requests, non-preemptive once issued.

    :param number: unique in one engine life, rising with dispatch
    :param stage: the stage
    :param requests: its requests, in the order of the batch
    """

    number: int
    stage: Stage
    requests: tuple[Request, ...]
