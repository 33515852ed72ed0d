# SPDX-License-Identifier: Apache-2.0
"""Sees to it that every request gets exactly one answer, and counts them."""

import logging
from collections.abc import Callable

from xinfer_ros.core.chunk import Answer, Rows, ServerTimes, check_rows
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.answers import with_rows, without_rows
from xinfer_ros.engine.observer import ServerObserver
from xinfer_ros.engine.pending import Pending, PendingRequests
from xinfer_ros.engine.records import Done
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.status import Tally
from xinfer_ros.errors import Reason, Rejected

log = logging.getLogger(__name__)


class Answering:
    """
    Publishes answers; from any thread.

    :param pending: who waits for what
    :param clock: the server's monotonic clock
    :param publish: sends an answer to a robot
    :param observer: is told of each answer
    """

    def __init__(
        self,
        pending: PendingRequests,
        clock: Clock,
        publish: Callable[[Robot, Answer], None],
        observer: ServerObserver,
    ) -> None:
        self._pending, self._clock, self._publish = pending, clock, publish
        self._observer = observer
        self.tally = Tally()

    def refuse(
        self,
        robot: Robot,
        observation: Observation,
        refusal: Rejected,
        arrival_ns: int,
        epoch: int,
    ) -> None:
        """Answer an observation that is not taken in."""
        self.tally.count(refusal.reason)
        server_ns = self._clock.now_ns() - arrival_ns
        answer = without_rows(observation, epoch, refusal.reason, refusal.detail, server_ns)
        self._observer.answered(robot, observation, answer, arrival_ns)
        self._publish(robot, answer)

    def conclude(self, pending: Pending, reason: Reason, detail: str) -> None:
        """Answer a request without rows, unless it has its answer already."""
        if not self._pending.claim_answer(pending):
            return
        self.tally.count(reason)
        server_ns = self._clock.now_ns() - pending.arrival_ns
        answer = without_rows(pending.observation, pending.life.epoch, reason, detail, server_ns)
        self._observer.answered(pending.robot, pending.observation, answer, pending.arrival_ns)
        self._publish(pending.robot, answer)

    def done(self, pending: Pending, record: Done, rows: Rows) -> None:
        """
        Answer a request with its rows, unless it has its answer already.

        :param rows: ``(H, action_dim)`` as the model gave them; nonsense is not passed on
        """
        life = pending.life
        try:
            check_rows(rows, life.contract.action_dim)
        except Rejected as refusal:
            log.error('request %d: the model answered nonsense: %s', record.key, refusal.detail)
            self.conclude(pending, refusal.reason, refusal.detail)
            return
        if not self._pending.claim_answer(pending):
            return
        self.tally.count(Reason.OK)
        times = ServerTimes(
            decode_ns=pending.decode_ns,
            queue_ns=record.queue_ns,
            vit_ns=record.vit_ns,
            prefill_ns=record.prefill_ns,
            action_ns=record.action_ns,
            server_ns=self._clock.now_ns() - pending.arrival_ns,
        )
        answer = with_rows(
            pending.robot, pending.observation, life, rows, times, record.ask_after_ns
        )
        self._observer.answered(pending.robot, pending.observation, answer, pending.arrival_ns)
        self._publish(pending.robot, answer)
