# SPDX-License-Identifier: Apache-2.0
"""The life of one request as sentences: why it was protected, deferred or late."""

from collections.abc import Iterator, Mapping, Sequence

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.request_account import ISSUED, RequestAccount, accounts
from xinfer_ros.fleet.run_events import (
    BudgetChanged,
    Decided,
    Ended,
    LoggedUnit,
    Outcome,
    RunEvent,
    Submitted,
    UnitEnded,
    UnitStarted,
)
from xinfer_ros.fleet.run_story import run_events
from xinfer_ros.sched.log_files import DecisionLog


class RequestStory:
    """
    Tells the life of one request; times count from its arrival.

    :param key: the request
    :param names: of robots by their number
    :param begins_ns: when the log begins [ns]
    """

    def __init__(self, key: int, names: Mapping[int, str], begins_ns: int) -> None:
        self._key, self._names, self._begins_ns = key, names, begins_ns
        self._arrival_ns = 0
        self._robots: dict[int, int] = {}  # of requests that were met
        self.lines: list[str] = []

    def take(self, event: RunEvent, account: RequestAccount | None) -> None:
        """Take in what happened, and tell it if it is about the request."""
        match event:
            case Submitted():
                self._robots[event.request.key] = event.request.robot
                if event.request.key == self._key:
                    self._submitted(event)
            case Decided() if event.request.key == self._key:
                self._decided(event)
            case UnitStarted() if self._is_in(event.unit):
                self._started(event)
            case UnitEnded() if self._is_in(event.unit):
                self._unit_ended(event)
            case BudgetChanged() if event.request.key == self._key:
                left_ms = (event.request.deadline_ns - event.at_ns) / 1e6
                budget = f'its response budget is {event.request.budget_ns / 1e6:.1f} ms now'
                self._say(event.at_ns, f'{budget}: {left_ms:.1f} ms are left')
            case Ended() if event.request.key == self._key:
                self._ended(event)
                if account is not None:
                    self.lines += ['', *verdict(account)]

    def _say(self, at_ns: int, text: str) -> None:
        self.lines.append(f'{(at_ns - self._arrival_ns) / 1e6:+10.1f} ms  {text}')

    def _name(self, key: int) -> str:
        robot = self._robots.get(key)
        return f'request {key}' if robot is None else f'request {key} of {self._robot(robot)}'

    def _robot(self, number: int) -> str:
        return self._names.get(number, f'robot {number}')

    def _is_in(self, unit: LoggedUnit) -> bool:
        return any(request.key == self._key for request in unit.requests)

    def _submitted(self, event: Submitted) -> None:
        request = event.request
        self._arrival_ns = request.arrival_ns
        after_s = (request.arrival_ns - self._begins_ns) / 1e9
        budget_ms, due_ms = request.budget_ns / 1e6, request.deadline_ns - request.arrival_ns
        self.lines.append(
            f'request {request.key} of {self._robot(request.robot)}, {after_s:.3f} s into the '
            f'log: response budget {budget_ms:.1f} ms, due {due_ms / 1e6:.1f} ms after its arrival'
        )
        self._say(event.at_ns, f'its inputs are ready: slack {event.slack_ms:.1f} ms')

    def _decided(self, event: Decided) -> None:
        if event.decision.verdict in ISSUED:
            return  # its unit is told
        reason = event.decision.reason(self._name)
        slack = f'(its own slack: {event.slack_ms:.1f} ms)'
        self._say(event.at_ns, f'{event.decision.stage.name} {reason} {slack}')

    def _started(self, event: UnitStarted) -> None:
        unit = event.unit
        own = next(request for request in unit.requests if request.key == self._key)
        others = [self._name(one.key) for one in unit.requests if one.key != self._key]
        beside = f' with {", ".join(others)}' if others else ''
        shielded = ', shielded from the others' if unit.protected else ''
        self._say(
            event.at_ns,
            f'{unit.stage.name} starts{beside}{shielded}, after '
            f'{(event.at_ns - own.ready_ns) / 1e6:.1f} ms in its queue; predicted to take '
            f'{(unit.foreseen_end_ns - event.at_ns) / 1e6:.1f} ms',
        )

    def _unit_ended(self, event: UnitEnded) -> None:
        unit = event.unit
        took_ms = (event.at_ns - unit.started_ns) / 1e6
        off_ms = (event.at_ns - unit.foreseen_end_ns) / 1e6
        how = 'ends' if event.good else 'fails'
        than = f'{abs(off_ms):.1f} ms {"later" if off_ms > 0 else "sooner"} than predicted'
        self._say(event.at_ns, f'{unit.stage.name} {how} after {took_ms:.1f} ms, {than}')

    def _ended(self, event: Ended) -> None:
        pace = ''
        if event.pace_ns:
            pace = f'; its robot is asked back {event.pace_ns / 1e6:.1f} ms after this arrival'
        self._say(event.at_ns, f'{event.outcome.value}{pace}')


def request_story(log: DecisionLog, key: int) -> list[str]:
    """
    Return the life of a request as lines.

    :raises ConfigError: if the log cannot be run again, or does not know the request
    """
    story = RequestStory(key, log.names, log.begins_ns)
    first, last = None, 0
    for event, account in accounts(run_events(log)):
        story.take(event, account)
        if isinstance(event, Submitted):
            first, last = first or event.request.key, event.request.key
        if isinstance(event, Ended) and event.request.key == key:
            break
    if not story.lines:
        known = 'none' if first is None else f'{first} to {last}'
        raise ConfigError(f'the log does not tell of a request {key}; it knows {known}')
    return story.lines


def verdict(account: RequestAccount) -> Iterator[str]:
    """
    Yield how the request came out, where its time went, and why.

    :param account: of a request that has ended
    """
    end = account.end
    assert end is not None, 'the request has ended'
    yield _outcome(end, account)
    yield (
        f'Of {(end.at_ns - account.request.arrival_ns) / 1e6:.1f} ms: preparation '
        f'{account.prepared_ns / 1e6:.1f}, waiting {_by_stage(account.waited_ns)}, '
        f'execution {_by_stage(account.ran_ns)}.'
    )
    deferred_ns = sum(account.deferred_ns.values())
    if deferred_ns:
        yield f'Of the waiting, {deferred_ns / 1e6:.1f} ms were by decision of the policy.'
    if account.held_back:
        count = len(account.held_back)
        yield f'For its sake {count} other request{"s were" if count > 1 else " was"} held back.'


def _outcome(end: Ended, account: RequestAccount) -> str:
    if end.outcome is not Outcome.ANSWERED and not end.is_late:
        return f'Without an answer: {end.outcome.value}.'
    if not end.is_late:
        return f'On time: {-end.late_ns / 1e6:.1f} ms before its deadline.'
    what = (
        'Late' if end.outcome is Outcome.ANSWERED else f'Without an answer ({end.outcome.value})'
    )
    return f'{what}, by {end.late_ns / 1e6:.1f} ms, chiefly because {account.cause()}.'


def _by_stage(times_ns: Sequence[int]) -> str:
    parts = [
        f'{stage.name} {ns / 1e6:.1f}' for stage, ns in zip(Stage, times_ns, strict=True) if ns
    ]
    return f'{sum(times_ns) / 1e6:.1f} ({", ".join(parts)})' if parts else '0.0'
