# SPDX-License-Identifier: Apache-2.0
"""The requests of a decision log that were late, each with where its time went."""

from collections.abc import Collection
from dataclasses import dataclass

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.fleet.request_account import RequestAccount, accounts
from xinfer_ros.fleet.run_events import Ended, Outcome
from xinfer_ros.fleet.run_story import run_events
from xinfer_ros.sched.log_files import DecisionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRequest:
    """
    A request whose robot got no answer within the deadline. Times in ms.

    :param after_s: when it arrived, since the log began [s]
    :param late_ms: by how much; of one without an answer, as it ended
    :param deferred_ms: of the waiting, by decision of the policy
    :param longer_ms: by how much its units took longer than predicted
    :param why: the largest part of its time that need not have been
    """

    key: int
    robot: str
    after_s: float
    budget_ms: float
    answered: bool
    late_ms: float
    waited_ms: float
    deferred_ms: float
    ran_ms: float
    longer_ms: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRequests:
    """
    What a log tells of late requests, of one robot or of all.

    :param ended: requests that ended in it, without those that were superseded
    :param late: those that were late, by their end
    """

    ended: int
    late: tuple[LateRequest, ...]


def late_requests(log: DecisionLog, robot: str = '') -> LateRequests:
    """
    Return the late requests of a log.

    :param robot: id of the robot that is asked about, empty for all
    :raises ConfigError: if the log cannot be run again, or does not know the robot
    """
    names, ended = log.names, 0
    late: list[LateRequest] = []
    numbers = {number for number, name in names.items() if not robot or name == robot}
    if robot and not numbers:
        raise ConfigError(f'the log has no robot {robot}; it has {_names(names.values())}')
    for event, account in accounts(run_events(log)):
        if not isinstance(event, Ended) or event.outcome is Outcome.SUPERSEDED:
            continue
        number = event.request.robot
        if robot and number not in numbers:
            continue
        ended += 1
        if event.is_late and account is not None:
            name = names.get(number, f'robot {number}')
            late.append(_late(event, account, name, log.begins_ns))
    return LateRequests(ended=ended, late=tuple(late))


def _names(names: Collection[str]) -> str:
    return ', '.join(sorted(names)) if names else 'no names of robots'


def _late(end: Ended, account: RequestAccount, robot: str, begins_ns: int) -> LateRequest:
    request = end.request
    return LateRequest(
        key=request.key,
        robot=robot,
        after_s=(request.arrival_ns - begins_ns) / 1e9,
        budget_ms=request.budget_ns / 1e6,
        answered=end.outcome is Outcome.ANSWERED,
        late_ms=end.late_ns / 1e6,
        waited_ms=sum(account.waited_ns) / 1e6,
        deferred_ms=sum(account.deferred_ns.values()) / 1e6,
        ran_ms=sum(account.ran_ns) / 1e6,
        longer_ms=account.longer_ns / 1e6,
        why=account.cause(),
    )


def late_table(found: LateRequests, last: int) -> ReportTable:
    """
    Return the newest late requests as a table.

    :param last: how many at most
    """
    shown = found.late[-last:]
    of = f'the newest {last} of them' if len(shown) < len(found.late) else 'all of them'
    title = f'{len(found.late)} of {found.ended} requests were late'
    return ReportTable(
        title=f'{title}; {of}' if found.late else title,
        columns=(
            'request', 'robot', 'at s', 'budget ms', 'late by ms', 'waited ms', 'deferred ms',
            'ran ms', 'longer by ms', 'chiefly because',
        ),
        rows=tuple(_row(late) for late in shown),
        note='at: since the log began; deferred: of the waiting, by decision of the policy; '
        'longer by: than predicted as its units started. xinfer explain LOG REQUEST tells more.',
        left=('robot', 'chiefly because'),
    )  # fmt: skip


def _row(late: LateRequest) -> tuple[str, ...]:
    times_ms = (late.waited_ms, late.deferred_ms, late.ran_ms, late.longer_ms)
    return (
        str(late.key),
        late.robot,
        f'{late.after_s:.3f}',
        f'{late.budget_ms:.1f}',
        f'{late.late_ms:.1f}' if late.answered else f'{late.late_ms:.1f}, no answer',
        *(f'{time_ms:.1f}' for time_ms in times_ms),
        late.why,
    )
