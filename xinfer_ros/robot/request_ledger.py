# SPDX-License-Identifier: Apache-2.0
"""The requests that a robot has sent: which one is waited for, and which answers are believed."""

from collections import deque
from dataclasses import dataclass

from xinfer_ros.core.chunk import Answer, Rows
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.next_send import InFlight, NextSend

_REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDraft:
    """
    An observation's part that the executor decides; the node adds pictures, state and task.

    :param ticks: control ticks so far, ``starved_ticks`` among them
    :param answered_request_id: latest request whose answer has come, 0: none
    :param round_trip_ns: from sending that one to its answer [ns]
    """

    session: int
    episode: int
    request_id: int
    executed_steps: int
    leftover: Rows
    commitment_steps: int
    budget_ns: int
    minimum_period_ns: int
    ticks: int = 0
    starved_ticks: int = 0
    answered_request_id: int = 0
    round_trip_ns: int = 0


class RequestLedger:
    """
    Numbers requests and matches answers to them, by id and never by order of arrival.

    Not thread-safe: its owner locks.

    :param next_send: the rule by which requests leave
    """

    def __init__(self, next_send: NextSend) -> None:
        self.next_send = next_send
        self._last_id = 0
        self._last_accepted_id = 0
        self._given_up: deque[int] = deque(maxlen=_REMEMBERED)
        self._superseded: deque[int] = deque(maxlen=_REMEMBERED)
        self.unanswered = 0
        self.superseded = 0
        self.never_sent = 0

    def send(self, now_ns: int, budget_ns: int, executed_steps: int) -> int:
        """Note that a request leaves; return its id."""
        self._last_id += 1
        self.next_send.sent(
            InFlight(
                request_id=self._last_id,
                sent_ns=now_ns,
                budget_ns=budget_ns,
                executed_steps=executed_steps,
            )
        )
        return self._last_id

    def check_episode(self, answer: Answer, episode: int) -> None:
        """
        Refuse an answer to a request that was never sent, or of another episode.

        :param episode: the present one
        :raises Rejected: WRONG_EPISODE
        """
        if answer.request_id > self._last_id or answer.episode > episode:
            self.never_sent += 1
            raise Rejected(Reason.WRONG_EPISODE, f'request {answer.request_id} was never sent')
        if answer.episode != episode:
            raise Rejected(Reason.WRONG_EPISODE, f'episode {answer.episode} is over')

    def give_up_if_lost(self, now_ns: int) -> bool:
        """Give up the request in flight if its time is over; return whether it was."""
        lost = self.next_send.give_up_if_lost(now_ns)
        if lost is not None:
            self._give_up(lost)
        return lost is not None

    def give_up(self) -> None:
        """Give up the request in flight, if there is one: nobody will answer it any more."""
        if self.next_send.in_flight is not None:
            self._give_up(self.next_send.in_flight)
            self.next_send.withdraw()

    def _give_up(self, request: InFlight) -> None:
        self._given_up.append(request.request_id)
        self.unanswered += 1

    def supersede(self) -> None:
        """Withdraw the request in flight, if there is one: another question is better."""
        if self.next_send.in_flight is not None:
            self._superseded.append(self.next_send.in_flight.request_id)
            self.superseded += 1
        self.next_send.withdraw()

    def forget(self) -> None:
        """Stop waiting for the request in flight, which belongs to an episode that is over."""
        self.next_send.withdraw()

    def match(self, answer: Answer) -> InFlight:
        """
        Return the request in flight that an answer is for.

        :raises Rejected: SUPERSEDED, DUPLICATE_CHUNK or STALE_CHUNK if it is for another one
        """
        request, answered_id = self.next_send.in_flight, answer.request_id
        if request is not None and request.request_id == answered_id:
            if answer.start_step != request.executed_steps:
                raise Rejected(
                    Reason.STALE_CHUNK,
                    f'the chunk starts at step {answer.start_step}, '
                    f'asked was from {request.executed_steps}',
                )
            return request
        if answered_id in self._superseded:
            raise Rejected(
                Reason.SUPERSEDED, f'request {answered_id} was withdrawn: the task has changed'
            )
        if answered_id == self._last_accepted_id:
            raise Rejected(Reason.DUPLICATE_CHUNK, f'request {answered_id} was answered')
        if answered_id in self._given_up:
            self._given_up.remove(answered_id)  # too late, but not unanswered
            self.unanswered -= 1
        raise Rejected(Reason.STALE_CHUNK, f'request {answered_id} is not waited for')

    def fill(self, report: RobotReport) -> None:
        """Write what is known here into a report."""
        report.misaddressed += self.never_sent
        report.unanswered, report.superseded = self.unanswered, self.superseded
        report.minimum_period_ns = self.next_send.minimum_period_ns

    def accepted(self, request: InFlight) -> None:
        """Note that the rows of an answer were taken."""
        self._last_accepted_id = request.request_id
