# SPDX-License-Identifier: Apache-2.0
"""Every call of a scheduler core, kept to be replayed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.forwarding_core import ForwardingCore


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call of a core.

    :param name: of the method
    :param positional: its positional arguments
    :param named: its keyword arguments
    :param waits: whether a request was waiting: such a ``dispatch`` is timed
    :param units: numbers of the units that it started
    """

    name: str
    positional: tuple[int, ...] = ()
    named: dict[str, int] = field(default_factory=dict)
    waits: bool = False
    units: tuple[int, ...] = ()


class RecordingCore(ForwardingCore):
    """A scheduler core that hands every call on to another, and keeps it."""

    def __init__(self, core: SchedulerCore) -> None:
        super().__init__(core)
        self._waiting: set[int] = set()
        self._members: dict[int, tuple[int, tuple[int, ...]]] = {}  # stage and keys, by unit
        self.calls: list[Call] = []

    def announce(self, **named: int) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        self.calls.append(Call(name='announce', named=named))
        super().announce(**named)

    def observe(self, **named: int) -> None:
        """Take in what an observation says of the action queue of a robot."""
        self.calls.append(Call(name='observe', named=named))
        super().observe(**named)

    def submit(self, **named: int) -> None:
        """Take in a request that can start."""
        self.calls.append(Call(name='submit', named=named))
        self._waiting.add(named['key'])
        super().submit(**named)

    def release(self, now_ns: int) -> Sequence[int]:
        """Return keys that are answered now."""
        self.calls.append(Call(name='release', positional=(now_ns,)))
        return self._core.release(now_ns)

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Return the units that start now."""
        waits = bool(self._waiting)
        units = self._core.dispatch(now_ns)
        numbers = tuple(number for number, _, _ in units)
        self.calls.append(Call(name='dispatch', positional=(now_ns,), waits=waits, units=numbers))
        for number, stage, keys in units:
            self._members[number] = stage, tuple(keys)
            self._waiting.difference_update(keys)
        return units

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit."""
        self.calls.append(Call(name='complete', positional=(now_ns, number)))
        stage, keys = self._members.pop(number)
        if stage < Stage.ACTION:
            self._waiting.update(keys)
        return self._core.complete(now_ns, number)

    def pace_ns(self, robot: int) -> int:
        """Return how long after its last arrival a robot should ask again."""
        self.calls.append(Call(name='pace_ns', positional=(robot,)))
        return self._core.pace_ns(robot)

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out."""
        self.calls.append(Call(name='cancel', positional=(now_ns, key)))
        self._waiting.discard(key)
        return self._core.cancel(now_ns, key)

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit."""
        self.calls.append(Call(name='withdraw', positional=(now_ns, number)))
        self._members.pop(number)
        self._core.withdraw(now_ns, number)

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request."""
        self.calls.append(Call(name='set_budget', positional=(key, budget_ns)))
        self._core.set_budget(key, budget_ns)
