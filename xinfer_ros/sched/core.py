# SPDX-License-Identifier: Apache-2.0
"""The protocol of a scheduling policy with its state: what every driver calls."""

from collections.abc import Sequence
from typing import Protocol

DecisionTuple = tuple[float, int, int, int, int, float, float, float, float]
CountersTuple = tuple[tuple[int, ...], int, int]


class SchedulerCore(Protocol):
    """
    Decides what starts. Pure: every time is an argument, in integer nanoseconds, and never falls.

    The compiled one (``native_core``) serves the engine and the simulator; the readable one
    (``reference_core``) says the same in Python, and tests hold them to each other.
    """

    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        ...

    def observe(
        self,
        *,
        now_ns: int,
        robot: int,
        executed_steps: int,
        leftover_steps: int,
        horizon_steps: int,
        spacing_ns: int,
    ) -> None:
        """
        Take in what an observation says of the action queue of a robot.

        :param executed_steps: rows that the robot has consumed since its session began
        :param leftover_steps: rows that it may still execute
        :param horizon_steps: rows that a fresh chunk is good for, 0 if that is not known
        :param spacing_ns: of its rows, 0 if that is not known
        """
        ...

    def submit(
        self,
        *,
        now_ns: int,
        key: int,
        robot: int,
        arrival_ns: int,
        budget_ns: int,
        reserved_ns: int,
        period_ns: int,
    ) -> None:
        """
        Take in a request that can start.

        :param key: unique, rising with arrival
        :param robot: small number of the robot, 0, 1, ...
        :param period_ns: ``TE``, least time between two requests of the robot
        """
        ...

    def release(self, now_ns: int) -> Sequence[int]:
        """
        Return keys that ``complete`` has held back and that are answered now.

        Call it right before every ``dispatch``; the keys are to be treated as those that
        ``complete`` returns.
        """
        ...

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Return the units that start now, in order: number, stage, keys of its requests."""
        ...

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit; return requests that leave by that."""
        ...

    def pace_ns(self, robot: int) -> int:
        """
        Return how long after its last arrival a robot should ask again, 0 to leave it to it.

        Called once for every request that ``complete`` or ``release`` has returned and that is
        answered, in that order.
        """
        ...

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out; return False if it runs or is not known."""
        ...

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit; its requests are gone."""
        ...

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request; others are ignored."""
        ...

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units of each stage turn out to hold, over the calibration's."""
        ...

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        ...

    def num_protected(self) -> int:
        """Return the live requests that the scheduling policy shields."""
        ...

    def counters(self) -> CountersTuple:
        """
        Return what is counted from the first event on.

        Decisions by ``Verdict``, of which one that is only said again of the same stage of a
        request counts once; the sum over units of how far the end that was seen is from the one
        predicted, beside all that ran then, when the ``dispatch`` that started the unit was over
        [ns]; units in that sum.
        """
        ...

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept."""
        ...

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call, as the fields of ``Decision``."""
        ...
