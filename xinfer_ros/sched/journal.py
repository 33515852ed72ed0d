# SPDX-License-Identifier: Apache-2.0
"""The calls of a scheduler core that a journal has taken down, and how they are made again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xinfer_ros._native import read_journal
from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.core import SchedulerCore


class CallKind(IntEnum):
    """Methods of a core; the numbers are those of ``src/journal.hpp``."""

    ANNOUNCE = 1
    OBSERVE = 2
    SUBMIT = 3
    RELEASE = 4
    DISPATCH = 5
    COMPLETE = 6
    PACE = 7
    CANCEL = 8
    WITHDRAW = 9
    SET_BUDGET = 10


_ANNOUNCE = ('robot', 'arrival_ns', 'budget_ns', 'period_ns')
_OBSERVE = ('robot', 'executed_steps', 'leftover_steps', 'horizon_steps', 'spacing_ns')
_SUBMIT = ('key', 'robot', 'arrival_ns', 'budget_ns', 'reserved_ns', 'period_ns')
# names of the numbers that a core is told, besides the time
TOLD: dict[CallKind, tuple[str, ...]] = {
    CallKind.ANNOUNCE: _ANNOUNCE,
    CallKind.OBSERVE: _OBSERVE,
    CallKind.SUBMIT: _SUBMIT,
    CallKind.RELEASE: (),
    CallKind.DISPATCH: (),
    CallKind.COMPLETE: ('number',),
    CallKind.PACE: ('robot',),
    CallKind.CANCEL: ('key',),
    CallKind.WITHDRAW: ('number',),
    CallKind.SET_BUDGET: ('key', 'budget_ns'),
}
TIMELESS = (CallKind.PACE, CallKind.SET_BUDGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A unit that a ``dispatch`` has started."""

    number: int
    stage: Stage
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call of a core.

    :param now_ns: its time; of one that has none, that of the call before [ns]
    :param told: the numbers that ``TOLD`` names
    :param answer: what it returned: keys, the pace [ns], whether a request was cancelled
    :param units: what a ``dispatch`` has started
    """

    kind: CallKind
    now_ns: int
    told: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    units: tuple[Started, ...] = ()

    def named(self) -> dict[str, int]:
        """Return what the core is told, by name."""
        return dict(zip(TOLD[self.kind], self.told, strict=True))

    def make(self, core: SchedulerCore) -> 'Call':
        """Make the call again; return it with what this core answers."""
        answer: Sequence[int] = ()
        match self.kind:
            case CallKind.DISPATCH:
                units = tuple(
                    Started(number=number, stage=Stage(stage), keys=tuple(keys))
                    for number, stage, keys in core.dispatch(self.now_ns)
                )
                return Call(kind=self.kind, now_ns=self.now_ns, units=units)
            case CallKind.RELEASE:
                answer = core.release(self.now_ns)
            case CallKind.ANNOUNCE:
                core.announce(now_ns=self.now_ns, **self.named())
            case CallKind.OBSERVE:
                core.observe(now_ns=self.now_ns, **self.named())
            case CallKind.SUBMIT:
                core.submit(now_ns=self.now_ns, **self.named())
            case CallKind.COMPLETE:
                answer = core.complete(self.now_ns, *self.told)
            case CallKind.PACE:
                answer = (core.pace_ns(*self.told),)
            case CallKind.CANCEL:
                answer = (core.cancel(self.now_ns, *self.told),)
            case CallKind.WITHDRAW:
                core.withdraw(self.now_ns, *self.told)
            case CallKind.SET_BUDGET:
                core.set_budget(*self.told)
        return Call(kind=self.kind, now_ns=self.now_ns, told=self.told, answer=tuple(answer))


class JournalReader:
    """Reads the pieces of a journal in their order; the first begins with a whole time."""

    def __init__(self) -> None:
        self._last_ns = 0

    def read(self, piece: bytes) -> Iterator[Call]:
        """
        Yield the calls of the next piece.

        :raises ValueError: if it is no piece of a journal
        """
        before_ns = self._last_ns
        calls, self._last_ns = read_journal(piece, before_ns)
        for numbers in calls:
            call = _call(numbers, before_ns)
            before_ns = call.now_ns
            yield call


def _call(numbers: tuple[int, ...], before_ns: int) -> Call:
    kind = CallKind(numbers[0])
    now_ns, rest = (before_ns, numbers[1:]) if kind in TIMELESS else (numbers[1], numbers[2:])
    if kind is CallKind.DISPATCH:
        return Call(kind=kind, now_ns=now_ns, units=tuple(_units(rest)))
    told, answer = rest[: len(TOLD[kind])], rest[len(TOLD[kind]) :]
    if kind in (CallKind.RELEASE, CallKind.COMPLETE):
        answer = answer[1:]  # behind their number
    return Call(kind=kind, now_ns=now_ns, told=told, answer=answer)


def _units(numbers: tuple[int, ...]) -> Iterator[Started]:
    at = 1  # behind the number of units
    while at < len(numbers):
        number, stage, count = numbers[at : at + 3]
        keys = numbers[at + 3 : at + 3 + count]
        yield Started(number=number, stage=Stage(stage), keys=keys)
        at += 3 + count
