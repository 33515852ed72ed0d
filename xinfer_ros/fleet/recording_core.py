# SPDX-License-Identifier: Apache-2.0
"""Every call of a scheduler core, kept to be replayed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.core import DecisionTuple, SchedulerCore


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


class RecordingCore:
    """A scheduler core that hands every call on to another, and keeps it."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self._waiting: set[int] = set()
        self._members: dict[int, tuple[int, tuple[int, ...]]] = {}  # stage and keys, by unit
        self.calls: list[Call] = []

    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        named = {
            'now_ns': now_ns,
            'robot': robot,
            'arrival_ns': arrival_ns,
            'budget_ns': budget_ns,
            'period_ns': period_ns,
        }
        self.calls.append(Call(name='announce', named=named))
        self._core.announce(**named)

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
        named = {
            'now_ns': now_ns,
            'robot': robot,
            'executed_steps': executed_steps,
            'leftover_steps': leftover_steps,
            'horizon_steps': horizon_steps,
            'spacing_ns': spacing_ns,
        }
        self.calls.append(Call(name='observe', named=named))
        self._core.observe(**named)

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
        """Take in a request that can start."""
        named = {
            'now_ns': now_ns,
            'key': key,
            'robot': robot,
            'arrival_ns': arrival_ns,
            'budget_ns': budget_ns,
            'reserved_ns': reserved_ns,
            'period_ns': period_ns,
        }
        self.calls.append(Call(name='submit', named=named))
        self._waiting.add(key)
        self._core.submit(**named)

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

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units turn out to hold, over the calibration's."""
        return self._core.correction

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        return self._core.mirror_error

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept; that is no call to replay."""
        self._core.keep_log(keep)

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call."""
        return self._core.take_decisions()
