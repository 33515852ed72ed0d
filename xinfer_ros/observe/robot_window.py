# SPDX-License-Identifier: Apache-2.0
"""What one robot has asked for and got of late, in bounded memory."""

import math
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.observation import Observation
from xinfer_ros.core.request import MAX_BUDGET_NS
from xinfer_ros.errors import Reason
from xinfer_ros.sched.mirror import Mirror, Sight

MAX_ENTRIES = 4096  # of a window; a robot that asks for more has a shorter one
REMEMBERED = 4  # answers whose time on the network may still be told


class Given(NamedTuple):
    """An answer: when, why without rows, whether in time, and where its time went."""

    at_ns: int
    reason: Reason
    on_time: bool
    times: ServerTimes


class Told(NamedTuple):
    """
    What an observation tells beside its question.

    :param ticks: control ticks since the observation before, ``starved_ticks`` among them
    :param network_ns: of an earlier answer: round trip less its time in the server, None: not told
    """

    at_ns: int
    ticks: int
    starved_ticks: int
    network_ns: int | None


class Asked(NamedTuple):
    """What is kept of an observation; fields as there."""

    arrival_ns: int = 0
    request_id: int = 0
    budget_ns: int = 0
    minimum_period_ns: int = 0
    commitment_steps: int = 0
    executed_steps: int = 0
    leftover_steps: int = 0
    keyframe_spacing_ns: int = 0


NOTHING_ASKED = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotFigures:
    """
    What a window holds at a moment.

    :param served: answers with rows, by age
    :param refusals: answers without rows, by reason
    :param ticks: control ticks, ``starved_ticks`` among them
    :param network_ns: times on the network, both ways together [ns]
    :param span_s: the time that it covers [s]
    :param duplicates: others that came with its id and were refused
    :param queued_steps: rows left in its action queue, foreseen for now [steps]
    :param in_flight: whether it waits for an answer
    :param requests: observations since it registered
    :param responses: of these, answered with rows
    :param refused: of these, answered without
    """

    served: tuple[Given, ...] = ()
    refusals: Counter[Reason] = field(default_factory=Counter)
    ticks: int = 0
    starved_ticks: int = 0
    network_ns: tuple[int, ...] = ()
    span_s: float = 0.0
    duplicates: int = 0
    queued_steps: int = 0
    asked: Asked = NOTHING_ASKED
    in_flight: bool = False
    requests: int = 0
    responses: int = 0
    refused: int = 0

    @property
    def starved_share(self) -> float:
        """Return the share of control ticks without a valid action, NaN if none was told."""
        return self.starved_ticks / self.ticks if self.ticks else math.nan


class RobotWindow:
    """
    Takes in what happens to one robot; thread-safe.

    :param window_ns: what is older is forgotten [ns]
    :param horizon_steps: rows that a fresh chunk is good for, 0: not known [steps]
    :param now_ns: when it registered [ns]
    """

    def __init__(self, window_ns: int, horizon_steps: int, now_ns: int) -> None:
        self._window_ns, self._since_ns = window_ns, now_ns
        self._lock = threading.Lock()
        self._given: deque[Given] = deque(maxlen=MAX_ENTRIES)
        self._told: deque[Told] = deque(maxlen=MAX_ENTRIES)
        self._duplicates_ns: deque[int] = deque(maxlen=MAX_ENTRIES)
        self._horizon_steps = horizon_steps
        # the last two observations, and when each was answered with rows [ns]
        self._before = self._asked = NOTHING_ASKED
        self._before_sent_ns: int | None = None
        self._sent_ns: int | None = None
        self._in_flight = False
        self._ticks: tuple[int, int] | None = None  # and starved ones, at the last observation
        self._server_ns: dict[int, int] = {}  # of answers whose time on the network is not told
        self._requests = self._responses = self._refused = 0

    def arrived(self, observation: Observation, arrival_ns: int) -> Told:
        """Take in an observation; return what it tells beside its question."""
        with self._lock:
            ticks, starved_ticks = self._new_ticks(observation)
            told = Told(arrival_ns, ticks, starved_ticks, self._network_ns(observation))
            self._told.append(told)
            self._before, self._before_sent_ns = self._asked, self._sent_ns
            self._asked, self._sent_ns = _asked(observation, arrival_ns), None
            self._in_flight = True
            self._requests += 1
            return told

    def _new_ticks(self, observation: Observation) -> tuple[int, int]:
        before, now = self._ticks, (observation.ticks, observation.starved_ticks)
        self._ticks = now
        if before is None or now[0] < before[0] or now[1] < before[1]:
            return 0, 0  # its executor has started anew
        return now[0] - before[0], min(now[1] - before[1], now[0] - before[0])

    def _network_ns(self, observation: Observation) -> int | None:
        server_ns = self._server_ns.pop(observation.answered_request_id, None)
        if server_ns is None or not 0 < observation.round_trip_ns <= MAX_BUDGET_NS:
            return None
        return max(observation.round_trip_ns - server_ns, 0)

    def answered(self, request_id: int, answer: Answer, now_ns: int, *, on_time: bool) -> None:
        """Take in the answer to one of its observations."""
        served = answer.reason is Reason.OK
        with self._lock:
            self._given.append(Given(now_ns, answer.reason, on_time, answer.times))
            self._responses += served
            self._refused += not served
            self._server_ns[request_id] = answer.times.server_ns
            if len(self._server_ns) > REMEMBERED:
                del self._server_ns[next(iter(self._server_ns))]
            if request_id != self._asked.request_id:
                return  # superseded: the newer one is computed
            self._in_flight = False
            if served:
                self._sent_ns = now_ns

    def duplicated(self, now_ns: int) -> None:
        """Take in that another one came with its id."""
        with self._lock:
            self._duplicates_ns.append(now_ns)

    def figures(self, now_ns: int) -> RobotFigures:
        """Return what the window holds now [ns]."""
        with self._lock:
            from_ns = self._forget(now_ns)
            given, told = list(self._given), list(self._told)
            refusals: Counter[Reason] = Counter(
                one.reason for one in given if one.reason is not Reason.OK
            )
            return RobotFigures(
                served=tuple(one for one in given if one.reason is Reason.OK),
                refusals=refusals,
                ticks=sum(one.ticks for one in told),
                starved_ticks=sum(one.starved_ticks for one in told),
                network_ns=tuple(o.network_ns for o in told if o.network_ns is not None),
                span_s=max(now_ns - from_ns, 1) / 1e9,
                duplicates=len(self._duplicates_ns),
                queued_steps=self._queued_steps(now_ns),
                asked=self._asked,
                in_flight=self._in_flight,
                requests=self._requests,
                responses=self._responses,
                refused=self._refused,
            )

    def _queued_steps(self, now_ns: int) -> int:
        """Return the rows that the scheduler's mirror of the queue foresees for now."""
        mirror = Mirror()
        for asked, sent_ns in (
            (self._before, self._before_sent_ns),
            (self._asked, self._sent_ns),
        ):
            mirror.observe(asked.arrival_ns / 1e6, self._sight(asked))
            if sent_ns is not None:
                mirror.compute()
                mirror.send(sent_ns / 1e6, 0.0)
        return int(mirror.queued_at(now_ns / 1e6))

    def _sight(self, asked: Asked) -> Sight:
        return Sight(
            executed=float(asked.executed_steps),
            leftover=float(asked.leftover_steps),
            horizon=float(self._horizon_steps),
            spacing=asked.keyframe_spacing_ns / 1e6,
        )

    def _forget(self, now_ns: int) -> int:
        """Forget what is older than the window; return when it begins [ns]."""
        from_ns = max(now_ns - self._window_ns, self._since_ns)
        while self._given and self._given[0].at_ns < from_ns:
            self._given.popleft()
        while self._told and self._told[0].at_ns < from_ns:
            self._told.popleft()
        while self._duplicates_ns and self._duplicates_ns[0] < from_ns:
            self._duplicates_ns.popleft()
        is_full = len(self._given) == MAX_ENTRIES
        return self._given[0].at_ns if is_full else from_ns


def _asked(observation: Observation, arrival_ns: int) -> Asked:
    return Asked(
        arrival_ns,
        observation.request_id,
        observation.budget_ns,
        observation.minimum_period_ns,
        observation.commitment_steps,
        observation.executed_steps,
        len(observation.leftover),
        observation.keyframe_spacing_ns,
    )
