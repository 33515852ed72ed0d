# SPDX-License-Identifier: Apache-2.0
"""A scheduler core that hands every call on to another; wrappers override what they change."""

from collections.abc import Sequence

from xinfer_ros.sched.core import CountersTuple, DecisionTuple, SchedulerCore


class ForwardingCore:
    """
    Hands every call on; the protocol is ``sched.core.SchedulerCore``.

    :param core: the one that decides; used by nobody else
    """

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core

    def announce(self, **named: int) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        self._core.announce(**named)

    def observe(self, **named: int) -> None:
        """Take in what an observation says of the action queue of a robot."""
        self._core.observe(**named)

    def submit(self, **named: int) -> None:
        """Take in a request that can start."""
        self._core.submit(**named)

    def release(self, now_ns: int) -> Sequence[int]:
        """Return keys that ``complete`` has held back and that are answered now."""
        return self._core.release(now_ns)

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Return the units that start now."""
        return self._core.dispatch(now_ns)

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit; return requests that leave by that."""
        return self._core.complete(now_ns, number)

    def pace_ns(self, robot: int) -> int:
        """Return how long after its last arrival a robot should ask again, 0: as it likes."""
        return self._core.pace_ns(robot)

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out; return False if it runs or is not known."""
        return self._core.cancel(now_ns, key)

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit; its requests are gone."""
        self._core.withdraw(now_ns, number)

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request; others are ignored."""
        self._core.set_budget(key, budget_ns)

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units of each stage turn out to hold, over the calibration's."""
        return self._core.correction

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        return self._core.mirror_error

    def num_protected(self) -> int:
        """Return the live requests that the scheduling policy shields."""
        return self._core.num_protected()

    def counters(self) -> CountersTuple:
        """Return what is counted from the first event on."""
        return self._core.counters()

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept."""
        self._core.keep_log(keep)

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call."""
        return self._core.take_decisions()
