# SPDX-License-Identifier: Apache-2.0
"""Common rounds: whoever asks while a round runs waits until all of it has ended."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from xinfer_ros.sched.core import DecisionTuple, SchedulerCore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submission:
    key: int
    robot: int
    arrival_ns: int
    budget_ns: int
    reserved_ns: int
    period_ns: int


class RoundBarrier:
    """
    A scheduling policy behind a barrier: the ablation of asynchronous execution.

    The policy sees the requests of one round only; the next round begins with all that have come
    when the last request of this one has ended. The protocol is ``sched.core.SchedulerCore``.

    :param core: the scheduling policy with its state; used by nobody else
    """

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self._round: set[int] = set()
        self._next: dict[int, _Submission] = {}
        self._units: dict[int, tuple[int, ...]] = {}

    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        self._core.announce(
            now_ns=now_ns,
            robot=robot,
            arrival_ns=arrival_ns,
            budget_ns=budget_ns,
            period_ns=period_ns,
        )

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
        """Take in what an observation says of the action queue of a robot."""
        self._core.observe(
            now_ns=now_ns,
            robot=robot,
            executed_steps=executed_steps,
            leftover_steps=leftover_steps,
            horizon_steps=horizon_steps,
            spacing_ns=spacing_ns,
        )

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
        """Take in a request for the next round."""
        self._next[key] = _Submission(
            key=key,
            robot=robot,
            arrival_ns=arrival_ns,
            budget_ns=budget_ns,
            reserved_ns=reserved_ns,
            period_ns=period_ns,
        )

    def release(self, now_ns: int) -> Sequence[int]:
        """Return keys that ``complete`` has held back and that are answered now."""
        finished = self._core.release(now_ns)
        self._round.difference_update(finished)
        return finished

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Begin a round if none runs; return the units that start now."""
        if not self._round:
            self._begin(now_ns)
        started = self._core.dispatch(now_ns)
        for number, _, keys in started:
            self._units[number] = tuple(keys)
        return started

    def _begin(self, now_ns: int) -> None:
        for key, waiting in self._next.items():
            self._round.add(key)
            self._core.submit(now_ns=now_ns, **asdict(waiting))
        self._next.clear()

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit; return the keys of requests whose last stage it was."""
        del self._units[number]
        finished = self._core.complete(now_ns, number)
        self._round.difference_update(finished)
        return finished

    def pace_ns(self, robot: int) -> int:
        """Return how long after its last arrival a robot should ask again, 0: as it likes."""
        return self._core.pace_ns(robot)

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out; return False if it runs or is not known."""
        if self._next.pop(key, None) is not None:
            return True
        is_out = self._core.cancel(now_ns, key)
        if is_out:
            self._round.discard(key)
        return is_out

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit; its requests are gone."""
        self._round.difference_update(self._units.pop(number))
        self._core.withdraw(now_ns, number)

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request; others are ignored."""
        if key in self._next:
            self._next[key] = replace(self._next[key], budget_ns=budget_ns)
        else:
            self._core.set_budget(key, budget_ns)

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units of each stage turn out to hold, over the calibration's."""
        return self._core.correction

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        return self._core.mirror_error

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept."""
        self._core.keep_log(keep)

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call."""
        return self._core.take_decisions()
