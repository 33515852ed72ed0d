# SPDX-License-Identifier: Apache-2.0
"""Where the time of each request went, and why it was late."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.run_events import (
    Decided,
    Ended,
    LoggedRequest,
    Missing,
    Outcome,
    RunEvent,
    Submitted,
    UnitEnded,
    UnitStarted,
)
from xinfer_ros.sched.decision import Verdict

ISSUED = (Verdict.ISSUED, Verdict.ISSUED_PROTECTED)
BY_CHECK = {
    Verdict.DEFERRED_CURRENT: 'for the slack of others',
    Verdict.DEFERRED_FORECAST: 'for a request foreseen',
    Verdict.DEFERRED_GATE: 'behind others that come first',
    Verdict.DEFERRED_ROLLOUT: 'for others that would have been late',
    Verdict.PUT_OFF: 'put off, so that others are on time',
    Verdict.DEFERRED_BATCH: 'for a batch to fill',
}


@dataclass(slots=True, kw_only=True)
class RequestAccount:
    """
    Where the time of one request went [ns].

    :param submitted_ns: when its inputs were ready
    :param slack_ms: when it was submitted, beside what ran then [ms]
    :param waited_ns: in the queue of each stage
    :param deferred_ns: of that, while the policy had decided against it, by verdict
    :param ran_ns: in units of each stage
    :param longer_ns: how much longer these took than predicted as they started, in all
    :param urgent_ns: when a unit of it first started as a shielded one, None if none did
    :param held_back: requests that were left waiting for its sake
    :param end: how it ended, None as long as it is live
    """

    request: LoggedRequest
    submitted_ns: int
    slack_ms: float
    waited_ns: list[int] = field(default_factory=lambda: [0 for _ in Stage])
    deferred_ns: dict[Verdict, int] = field(default_factory=lambda: defaultdict(int))
    ran_ns: list[int] = field(default_factory=lambda: [0 for _ in Stage])
    longer_ns: int = 0
    urgent_ns: int | None = None
    held_back: set[int] = field(default_factory=set)
    end: Ended | None = None
    deferral: tuple[Verdict, int] | None = None  # that lasts, and since when

    @property
    def prepared_ns(self) -> int:
        """Return the time from its arrival until it was submitted [ns]."""
        return self.submitted_ns - self.request.arrival_ns

    @property
    def lane_ns(self) -> int:
        """Return how long it waited although nothing was decided against it [ns]."""
        return sum(self.waited_ns) - sum(self.deferred_ns.values())

    def decided(self, verdict: Verdict, at_ns: int) -> None:
        """Take in another decision about it."""
        self.close_deferral(at_ns)
        self.deferral = None if verdict in ISSUED else (verdict, at_ns)

    def close_deferral(self, at_ns: int) -> None:
        """Take in that the decision about it no longer stands."""
        if self.deferral is not None:
            verdict, since_ns = self.deferral
            self.deferred_ns[verdict] += at_ns - since_ns
            self.deferral = None

    def cause(self) -> str:
        """Return what made it late: the largest part of its time that need not have been."""
        if self.slack_ms < 0.0:
            return (
                f'it lacked {-self.slack_ms:.1f} ms already as it was submitted, after '
                f'{self.prepared_ns / 1e6:.1f} ms of preparation'
            )
        parts = {
            f'it waited {ns / 1e6:.1f} ms {BY_CHECK[verdict]}': ns
            for verdict, ns in self.deferred_ns.items()
        }
        parts[f'it waited {self.lane_ns / 1e6:.1f} ms for a lane or its turn'] = self.lane_ns
        parts[f'its units took {self.longer_ns / 1e6:.1f} ms longer than predicted'] = (
            self.longer_ns
        )
        return max(parts, key=parts.__getitem__)


def accounts(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RequestAccount | None]]:
    """
    Yield every event, with the account of its request if it is about one alone.

    The account of a request is complete with its ``Ended``.
    """
    live: dict[int, RequestAccount] = {}
    for event in events:
        match event:
            case Submitted():
                live[event.request.key] = RequestAccount(
                    request=event.request, submitted_ns=event.at_ns, slack_ms=event.slack_ms
                )
                yield event, live[event.request.key]
            case Decided():
                _decided(live, event)
                yield event, live.get(event.request.key)
            case UnitStarted():
                _started(live, event)
                yield event, None
            case UnitEnded():
                _unit_ended(live, event)
                yield event, None
            case Missing():
                live.clear()
                yield event, None
            case Ended():
                yield event, _ended(live.pop(event.request.key, None), event)
            case _:
                yield event, None


def _decided(live: dict[int, RequestAccount], event: Decided) -> None:
    account = live.get(event.request.key)
    if account is not None:
        account.decided(event.decision.verdict, event.at_ns)
    if event.against is not None and event.against.key in live:
        live[event.against.key].held_back.add(event.request.key)


def _started(live: dict[int, RequestAccount], event: UnitStarted) -> None:
    for request in event.unit.requests:
        account = live.get(request.key)
        if account is None:
            continue
        account.close_deferral(event.at_ns)
        account.waited_ns[event.unit.stage] += event.at_ns - request.ready_ns
        if event.unit.protected and account.urgent_ns is None:
            account.urgent_ns = event.at_ns


def _unit_ended(live: dict[int, RequestAccount], event: UnitEnded) -> None:
    for request in event.unit.requests:
        account = live.get(request.key)
        if account is not None:
            account.ran_ns[event.unit.stage] += event.at_ns - event.unit.started_ns
            account.longer_ns += event.at_ns - event.unit.foreseen_end_ns


def _ended(account: RequestAccount | None, event: Ended) -> RequestAccount | None:
    if account is None:
        return None
    account.end = event
    account.close_deferral(event.at_ns)
    if event.outcome is not Outcome.ANSWERED and event.request.unit is None:
        account.waited_ns[event.request.stage] += event.at_ns - event.request.ready_ns
    return account
