# SPDX-License-Identifier: Apache-2.0
"""A decision log run again: the same scheduler is told the same, and must answer the same."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.decision import Decision
from xinfer_ros.sched.decision_log import LogPart
from xinfer_ros.sched.journal import Call, CallKind
from xinfer_ros.sched.log_files import DecisionLog
from xinfer_ros.sched.native import NativeCore


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One call of the log, made again.

    :param call: as it was logged
    :param answered: the same call with what the scheduler answers now
    :param decisions: those behind it, of a ``dispatch``, if they were asked for
    """

    call: Call
    answered: Call
    decisions: tuple[Decision, ...]

    @property
    def agrees(self) -> bool:
        """Return whether the answer is the one of the log."""
        return self.call == self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReplay:
    """
    A part of a log, to be run again.

    :param part: of the log
    :param core: the scheduler as it is where the part begins
    :param continues: whether it goes on exactly where the part before has ended; None if that part
        is not there or something between was lost
    """

    part: LogPart
    core: NativeCore
    continues: bool | None

    def steps(self) -> Iterator[Step]:
        """Yield every call, made again; once."""
        for call in self.part.calls():
            answered = _made(call, self.core)
            decisions = self.core.take_decisions() if call.kind is CallKind.DISPATCH else ()
            yield Step(
                call=call,
                answered=answered,
                decisions=tuple(Decision.of(values) for values in decisions),
            )


def _made(call: Call, core: NativeCore) -> Call:
    try:
        return call.make(core)
    except IndexError as error:  # what the log has started, this scheduler has not
        raise ConfigError(f'the scheduler cannot follow the log any more: {error}') from error


def replay_parts(log: DecisionLog, *, keep_decisions: bool) -> Iterator[PartReplay]:
    """
    Yield the parts of a log; ``steps`` of each is to be used up before the next is asked for.

    :param keep_decisions: whether every step tells the decisions behind it
    :raises ConfigError: if the state of a part cannot be read: another version has written it
    """
    before: PartReplay | None = None
    for part in log.parts:
        core = part.header.core()
        try:
            core.restore(part.state)
        except ValueError as error:
            raise ConfigError(
                f'part {part.header.part} cannot be run again: {error}; the version of xinfer_ros '
                'that has written the log can'
            ) from error
        core.keep_log(keep_decisions)
        before = PartReplay(part=part, core=core, continues=_continues(before, part))
        yield before


def _continues(before: PartReplay | None, part: LogPart) -> bool | None:
    if before is None or not part.header.follows(before.part.header):
        return None
    return before.core.snapshot() == part.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    Where a scheduler answers otherwise than the log says.

    :param part: of the log
    :param after_ns: time since the first call of the log [ns]
    :param step: the call; None if it is the state between two parts that differs
    :param before: the calls before it, the newest last
    """

    part: int
    after_ns: int
    step: Step | None
    before: tuple[Call, ...]


@dataclass(slots=True, kw_only=True)
class Agreement:
    """
    How far a replay agrees with its log.

    :param calls: made again, up to the difference
    :param units: started by them
    :param seconds: from the first call to the last
    :param states: boundaries between parts at which every bit of the state is the same
    """

    calls: int = 0
    units: int = 0
    states: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    difference: Difference | None = None

    @property
    def seconds(self) -> float:
        """Return the time from the first call to the last [s]."""
        return (self.last_ns - (self.first_ns or 0)) / 1e9 if self.first_ns is not None else 0.0


CONTEXT = 12  # calls that are shown before a difference


def check_agreement(
    log: DecisionLog, tell: Callable[[int], None] = lambda calls: None
) -> Agreement:
    """
    Run a log again up to the first difference.

    :param tell: called now and then with the calls made
    """
    found, before = Agreement(), deque[Call](maxlen=CONTEXT)

    def differs(part: LogPart, step: Step | None) -> Agreement:
        found.difference = Difference(
            part=part.header.part,
            after_ns=found.last_ns - (found.first_ns or found.last_ns),
            step=step,
            before=tuple(before),
        )
        return found

    for replay in replay_parts(log, keep_decisions=False):
        if replay.continues is False:
            return differs(replay.part, None)
        found.states += replay.continues is True
        for step in replay.steps():
            found.first_ns = step.call.now_ns if found.first_ns is None else found.first_ns
            found.last_ns = step.call.now_ns
            if not step.agrees:
                return differs(replay.part, step)
            found.calls += 1
            found.units += len(step.call.units)
            before.append(step.call)
            if found.calls % 50_000 == 0:
                tell(found.calls)
    return found
