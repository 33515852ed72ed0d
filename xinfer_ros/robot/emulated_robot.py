# SPDX-License-Identifier: Apache-2.0
"""A robot that only asks: the closed loop of an executor in time, without a control tick."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows, ServerTimes
from xinfer_ros.core.request import RETRY_FLOOR_NS
from xinfer_ros.errors import Reason
from xinfer_ros.robot.commitment import CommitmentEstimator
from xinfer_ros.robot.next_send import InFlight, NextSend
from xinfer_ros.robot.request_log import PARTS, RequestLog

_NO_ROWS: Rows = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedRobotPlan:
    """
    How a robot asks.

    :param number: of the robot in the fleet, from 0
    :param start_ns: when it sends first, monotonic clock [ns]
    :param end_ns: from when on it sends nothing more [ns]
    :param minimum_period_ns: ``TE`` [ns]
    :param budgets_ns: response budgets that it runs through in turn, over and over ``(n,)`` [ns]
    :param spacing_ns: of the rows that it plays [ns]
    :param backoff_ns: pause after an answer without rows [ns]
    :param first_request_id: ids rise from here; a session that goes on needs larger ones
    :param commitment_steps: ``d`` until a response has been measured [steps]
    :param max_commitment_steps: the most that the server honours [steps]
    :param keeps_pace: whether the server's wish for a later request is honoured
    """

    number: int
    start_ns: int
    end_ns: int
    minimum_period_ns: int
    budgets_ns: npt.NDArray[np.int64]
    spacing_ns: int = 30_000_000
    backoff_ns: int = 100_000_000
    first_request_id: int = 1
    commitment_steps: int = 6
    max_commitment_steps: int = 1000
    keeps_pace: bool = True

    @property
    def capacity(self) -> int:
        """Return the most requests that can leave: one a period, or one a request given up."""
        least_ns = min(self.minimum_period_ns, RETRY_FLOOR_NS)
        return max(self.end_ns - self.start_ns, 0) // least_ns + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedDraft:
    """
    What the robot decides of a request; the sender adds pictures and state.

    :param leftover: ``(steps, joints)`` float32, rows that it has not executed
    :param answered_request_id: latest request whose answer has come, 0: none
    :param round_trip_ns: from sending that one to its answer [ns]
    """

    request_id: int
    executed_steps: int
    leftover: Rows
    commitment_steps: int
    budget_ns: int
    answered_request_id: int = 0
    round_trip_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedAnswer:
    """
    An answer as the sender has received it.

    :param is_ours: whether session, or mark, is this robot's
    :param start_step: step of the first row, None where the wire does not say it
    :param rows: ``(H, joints)`` float32; none if the wire has no leftover to build from it
    """

    request_id: int
    is_ours: bool
    reason: Reason
    start_step: int | None = None
    rows: Rows = field(default_factory=lambda: _NO_ROWS)
    times: ServerTimes = field(default_factory=ServerTimes)
    ask_after_ns: int = 0


def first_sends_ns(robots: int, period_ns: int, seed: int) -> npt.NDArray[np.int64]:
    """
    Return when each robot sends first, after the start ``(robots,)`` [ns].

    Evenly over one period, in random order, so that no process holds neighbours.
    """
    order = np.random.default_rng(seed).permutation(robots)
    sends: npt.NDArray[np.int64] = (order * period_ns) // robots
    return sends


class EmulatedRobot:
    """
    Sends by ``s' = max(s + TE, r)``, executes rows as time goes by, and keeps what came of it.

    Values in, values out: no clock, thread or I/O. Rows are consumed one a spacing from the
    instant in which they came; what an executor would know of them, the request says.

    :param plan: how it asks
    """

    def __init__(self, plan: EmulatedRobotPlan) -> None:
        self.plan = plan
        self._rule = NextSend(plan.minimum_period_ns, plan.backoff_ns)
        self._commitment = CommitmentEstimator(plan.spacing_ns, plan.commitment_steps, 1)
        self._count, self._wrong = 0, 0
        self._free_ns = plan.start_ns  # later: when the latest request was answered or given up
        size = plan.capacity
        self._due, self._sent, self._received, self._budget, self._reason, self._executed = (
            np.zeros(size, np.int64) for _ in range(6)
        )
        self._times = np.zeros((size, len(PARTS)), np.int64)
        self._rows, self._start_step = _NO_ROWS, 0
        self._taken_ns, self._taken_steps = 0, 0
        self._answered_id, self._round_trip_ns = 0, 0

    @property
    def due_ns(self) -> int | None:
        """Return when to call ``send`` or ``give_up`` next [ns], None when it is done for good."""
        in_flight = self._rule.in_flight
        if in_flight is not None:
            return self._rule.lost_ns
        due_ns = self._next_ns()
        full = self._count >= len(self._due)
        return None if full or due_ns >= self.plan.end_ns else due_ns

    @property
    def is_waiting(self) -> bool:
        """Return whether a request is in flight."""
        return self._rule.in_flight is not None

    def _next_ns(self) -> int:
        """Return when the next request should leave if none is in flight [ns]."""
        return max(self._free_ns, self._rule.due_ns or 0)

    def executed_steps(self, now_ns: int) -> int:
        """Return the rows consumed by now [steps]."""
        left = self._start_step + len(self._rows) - self._taken_steps
        passed = max(now_ns - self._taken_ns, 0) // self.plan.spacing_ns
        return self._taken_steps + int(min(passed, max(left, 0)))

    def give_up(self, now_ns: int) -> bool:
        """Give the request in flight up if its time is over; return whether it was."""
        if self._rule.give_up_if_lost(now_ns) is None:
            return False
        self._free_ns = now_ns
        return True

    def send(self, now_ns: int) -> EmulatedDraft:
        """Return the request that leaves now; call it when it is due and none is in flight."""
        plan, row = self.plan, self._count
        budget_ns = int(plan.budgets_ns[row % len(plan.budgets_ns)])
        executed = self.executed_steps(now_ns)
        leftover = self._rows[executed - self._start_step :]
        wanted = self._commitment.steps(budget_ns, plan.max_commitment_steps)
        self._due[row], self._sent[row], self._budget[row] = self._next_ns(), now_ns, budget_ns
        self._executed[row] = executed
        self._count += 1
        request = InFlight(
            request_id=plan.first_request_id + row,
            sent_ns=now_ns,
            budget_ns=budget_ns,
            executed_steps=executed,
        )
        self._rule.sent(request)
        return EmulatedDraft(
            request_id=request.request_id,
            executed_steps=executed,
            leftover=leftover,
            commitment_steps=min(wanted, len(leftover)),
            budget_ns=budget_ns,
            answered_request_id=self._answered_id,
            round_trip_ns=self._round_trip_ns,
        )

    def take(self, now_ns: int, answer: EmulatedAnswer) -> bool:
        """
        Take an answer in; return whether the robot may ask again because of it.

        A wrong one is counted and changes nothing; a late one is noted, and its rows are not used.
        """
        row = answer.request_id - self.plan.first_request_id
        known = 0 <= row < self._count and not self._received[row]
        if not known or not answer.is_ours or not self._starts_right(row, answer):
            self._wrong += 1
            return False
        self._received[row], self._reason[row] = now_ns, int(answer.reason)
        self._answered_id = answer.request_id
        self._round_trip_ns = int(now_ns - self._sent[row])
        self._times[row] = [getattr(answer.times, part) for part in PARTS]
        in_flight = self._rule.in_flight
        if in_flight is None or in_flight.request_id != answer.request_id:
            return False
        good = answer.reason is Reason.OK
        pace_ns = answer.ask_after_ns if self.plan.keeps_pace else 0
        self._rule.answered(now_ns, with_rows=good, ask_after_ns=pace_ns)
        self._free_ns = now_ns
        if good:
            self._commitment.add(now_ns - in_flight.sent_ns)
            self._play(now_ns, answer.rows, in_flight.executed_steps)
        return True

    def _starts_right(self, row: int, answer: EmulatedAnswer) -> bool:
        told = answer.reason is Reason.OK and answer.start_step is not None
        return not told or answer.start_step == self._executed[row]

    def _play(self, now_ns: int, rows: Rows, start_step: int) -> None:
        """Let a chunk take over at the row behind what has been executed."""
        self._taken_steps, self._taken_ns = self.executed_steps(now_ns), now_ns
        self._rows, self._start_step = rows, start_step
        if self._taken_steps > start_step + len(rows):  # every row of it has been consumed
            self._rows, self._start_step = _NO_ROWS, self._taken_steps

    @property
    def num_sent(self) -> int:
        """Return the requests that have left."""
        return self._count

    def log(self) -> RequestLog:
        """Return what came of its requests; without the lag, which is the sender's."""
        rows = slice(0, self._count)
        return RequestLog(
            robot=np.full(self._count, self.plan.number, np.int64),
            due_ns=self._due[rows],
            sent_ns=self._sent[rows],
            received_ns=self._received[rows],
            budget_ns=self._budget[rows],
            reason=self._reason[rows],
            times_ns=self._times[rows],
            wrong=np.array([self._wrong], np.int64),
            lag_ns=np.zeros(0, np.int64),
        )
