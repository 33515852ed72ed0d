# SPDX-License-Identifier: Apache-2.0
"""Common rounds: whoever asks while a round runs waits until all of it has ended."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.forwarding_core import ForwardingCore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submission:
    key: int
    robot: int
    arrival_ns: int
    budget_ns: int
    reserved_ns: int
    period_ns: int


class RoundBarrier(ForwardingCore):
    """
    A scheduling policy behind a barrier: the ablation of asynchronous execution.

    The policy sees the requests of one round only; the next round begins with all that have come
    when the last request of this one has ended. The protocol is ``sched.core.SchedulerCore``.

    :param core: the scheduling policy with its state; used by nobody else
    """

    def __init__(self, core: SchedulerCore) -> None:
        super().__init__(core)
        self._round: set[int] = set()
        self._next: dict[int, _Submission] = {}
        self._units: dict[int, tuple[int, ...]] = {}

    def submit(self, **named: int) -> None:
        """Take in a request for the next round; when that begins is another time."""
        waiting = {name: value for name, value in named.items() if name != 'now_ns'}
        self._next[named['key']] = _Submission(**waiting)

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
