# SPDX-License-Identifier: Apache-2.0
"""The robot side of the loop: which row is next, when to ask, and which answers to believe."""

import threading
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Answer, Rows, check_rows, columns_by_name
from xinfer_ros.core.metrics import ExecutorPhase, LatencyWindow, RobotReport
from xinfer_ros.core.request import check_budget
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.action_queue import ActionQueue, QueuedRow
from xinfer_ros.robot.commitment import CommitmentEstimator
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.next_send import InFlight, NextSend
from xinfer_ros.robot.session import Grant, SessionKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDraft:
    """An observation's part that the executor decides; the node adds pictures, state and task."""

    session: int
    episode: int
    request_id: int
    executed_steps: int
    leftover: Rows
    commitment_steps: int
    budget_ns: int
    minimum_period_ns: int


class ChunkExecutor:
    """
    Executes chunks row by row and keeps one request in flight; knows nothing of ROS.

    ``tick`` and ``begin_request`` belong to the control thread, the rest to any. Nothing waits.
    """

    def __init__(self, settings: ExecutorSettings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._queue = ActionQueue(len(settings.joint_names))
        self._next_send = NextSend(settings.minimum_period_ns, settings.backoff_ns)
        self._budget_ns = settings.budget_ns
        self._episode = 0
        self._moving = False  # ticks before the first row of an episode are not starved
        self._last_request_id = 0
        self._last_accepted_id = 0
        self._given_up: deque[int] = deque(maxlen=256)
        self._latency = LatencyWindow()
        self._commitment: CommitmentEstimator | None = None  # None: fixed
        if settings.commitment_margin_steps is not None:
            self._commitment = CommitmentEstimator(
                settings.keyframe_spacing_ns,
                settings.commitment_steps,
                settings.commitment_margin_steps,
            )
        self.last_refusal = ''
        self._columns: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}
        self._report = RobotReport(robot_id=settings.robot_id)
        self.session = SessionKeeper()

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the robot's joints in its own order."""
        return self._settings.joint_names

    def tick(self) -> QueuedRow | None:
        """Take the row of this control tick; None means hold: there is no valid action."""
        row = self._queue.pop()
        with self._lock:
            self._moving |= row is not None
            if self._moving:
                self._report.ticks += 1
                self._report.starved_ticks += row is None
        return row

    def request_is_due(self, now_ns: int) -> bool:
        """Return whether an observation should leave now; gives up a request that was lost."""
        with self._lock:
            lost = self._next_send.give_up_if_lost(now_ns)
            if lost is not None:
                self._give_up(lost.request_id)
                self.session.doubted()
            return self.session.grant is not None and self._next_send.is_due(now_ns)

    def begin_request(self, now_ns: int) -> RequestDraft | None:
        """
        Fix what the next observation says of the queue, and count it as sent.

        :returns: None if the session was lost in the meantime
        """
        with self._lock:
            grant = self.session.grant
            if grant is None:
                return None
            executed_steps, leftover = self._queue.snapshot()
            self._last_request_id += 1
            self._report.requests += 1
            self._next_send.sent(
                InFlight(
                    request_id=self._last_request_id,
                    sent_ns=now_ns,
                    budget_ns=self._budget_ns,
                    executed_steps=executed_steps,
                )
            )
            self.session.sent(now_ns)
            self._report.commitment_steps = min(self._commitment_steps(grant), len(leftover))
            return RequestDraft(
                session=grant.session,
                episode=self._episode,
                request_id=self._last_request_id,
                executed_steps=executed_steps,
                leftover=leftover,
                commitment_steps=self._report.commitment_steps,
                budget_ns=self._budget_ns,
                minimum_period_ns=self._settings.minimum_period_ns,
            )

    def _commitment_steps(self, grant: Grant) -> int:
        if self._commitment is None:
            return self._settings.commitment_steps
        return self._commitment.steps(self._budget_ns, grant.max_commitment_steps)

    def accept(self, answer: Answer, now_ns: int) -> Reason:
        """
        Take in an answer: merge its rows, or count why not; a bad one changes nothing.

        The rows are used at once; a pace that the server asks for shifts the next request alone.

        :returns: OK if the rows were merged
        """
        with self._lock:
            try:
                self._check_address(answer)
                request = self._request_of(answer)
            except Rejected as refusal:
                return self.refuse(refusal)
            reason, detail = answer.reason, answer.detail
            if reason is Reason.OK:
                reason, detail = self._merge(answer)
            pace_ns = min(max(answer.ask_after_ns, 0), request.budget_ns)  # a server may be wrong
            self._next_send.answered(now_ns, with_rows=reason is Reason.OK, ask_after_ns=pace_ns)
            if reason is not Reason.OK:
                if reason is Reason.UNKNOWN_SESSION:
                    self.session.unknown()
                return self.refuse(Rejected(reason, detail))
            latency_ns = now_ns - request.sent_ns
            self._latency.add(latency_ns)
            if self._commitment is not None:
                self._commitment.add(latency_ns)
            self._last_accepted_id = answer.request_id
            self._report.chunks += 1
            self._report.on_time += latency_ns <= request.budget_ns
            return Reason.OK

    def refuse(self, refusal: Rejected) -> Reason:
        """Count a message that is not taken in, and remember why for the log."""
        with self._lock:
            self._report.reasons[refusal.reason] += 1
            self.last_refusal = refusal.detail
        return refusal.reason

    def _check_address(self, answer: Answer) -> None:
        grant = self.session.latest
        if grant is None or answer.session != grant.session:
            foreign = answer.reason is Reason.OK and not self.session.was_ours(answer.session)
            self._report.misaddressed += foreign
            raise Rejected(Reason.WRONG_SESSION, f'session {answer.session} is not in force')
        if answer.request_id > self._last_request_id or answer.episode > self._episode:
            self._report.misaddressed += 1
            raise Rejected(Reason.WRONG_EPISODE, f'request {answer.request_id} was never sent')
        if answer.episode != self._episode:
            raise Rejected(Reason.WRONG_EPISODE, f'episode {answer.episode} is over')
        if answer.reason is Reason.OK and answer.epoch != grant.epoch:
            raise Rejected(Reason.WRONG_EPOCH, f'epoch {answer.epoch} is over')

    def _request_of(self, answer: Answer) -> InFlight:
        request = self._next_send.in_flight
        if request is not None and request.request_id == answer.request_id:
            if answer.start_step != request.executed_steps:
                raise Rejected(
                    Reason.STALE_CHUNK,
                    f'the chunk starts at step {answer.start_step}, '
                    f'asked was from {request.executed_steps}',
                )
            return request
        if answer.request_id == self._last_accepted_id:
            raise Rejected(Reason.DUPLICATE_CHUNK, f'request {answer.request_id} was answered')
        if answer.request_id in self._given_up:
            self._given_up.remove(answer.request_id)  # too late, but not unanswered
            self._report.unanswered -= 1
        raise Rejected(Reason.STALE_CHUNK, f'request {answer.request_id} was given up')

    def _give_up(self, request_id: int) -> None:
        self._given_up.append(request_id)
        self._report.unanswered += 1

    def _merge(self, answer: Answer) -> tuple[Reason, str]:
        settings = self._settings
        try:
            check_rows(answer.rows, len(answer.joint_names))
            columns = self._columns.get(answer.joint_names)
            if columns is None:
                columns = columns_by_name(settings.joint_names, answer.joint_names)
                self._columns = {answer.joint_names: columns}
            if answer.keyframe_spacing_ns != settings.keyframe_spacing_ns:
                raise Rejected(
                    Reason.REJECTED_SPACING,
                    f'rows are {answer.keyframe_spacing_ns} ns apart, '
                    f'this robot plays one every {settings.keyframe_spacing_ns} ns',
                )
            row = self._queue.merge(answer.start_step, answer.rows[:, columns]).row
        except Rejected as refusal:
            return refusal.reason, refusal.detail
        self._count_handoff(answer, row)
        return Reason.OK, ''

    def _count_handoff(self, answer: Answer, row: int) -> None:
        """Note whether the frozen rows of a chunk covered the time until it took over."""
        frozen_steps = min(answer.frozen_steps, len(answer.rows))  # a server may be wrong
        self._report.degraded_chunks += answer.degraded
        self._report.handoff_violations += row > frozen_steps
        self._report.overfrozen_steps += max(frozen_steps - row, 0)

    def granted(self, grant: Grant, now_ns: int) -> None:
        """Take in a (renewed) registration; requests of another epoch are given up."""
        with self._lock:
            before, latest = self.session.grant, self.session.latest
            self.session.granted(grant, now_ns)
            if self._commitment is not None and latest != grant:
                self._commitment.begin_session()
            if before != grant and self._next_send.in_flight is not None:
                self._give_up(self._next_send.in_flight.request_id)
                self._next_send.withdraw()

    def start_episode(self) -> int:
        """Start over with an empty queue, refuse what is in flight; return the episode."""
        with self._lock:
            self._episode += 1
            self._moving = False
            self._queue.clear()
            self._next_send.withdraw()
            return self._episode

    def set_budget(self, budget_ns: int) -> None:
        """
        Set the response budget of the request in flight and of those to come [ns].

        :raises Rejected: REJECTED_BUDGET
        """
        check_budget(budget_ns)
        with self._lock:
            self._budget_ns = budget_ns
            self._next_send.set_budget(budget_ns)

    def report(self) -> RobotReport:
        """Return a copy of what this robot has seen so far."""
        with self._lock:
            grant = self.session.grant
            queued = len(self._queue)
            phase = ExecutorPhase.RUNNING if queued else ExecutorPhase.HOLDING
            return replace(
                self._report,
                phase=phase if grant is not None or queued else ExecutorPhase.REGISTERING,
                session=grant.session if grant is not None else 0,
                epoch=grant.epoch if grant is not None else 0,
                episode=self._episode,
                executed_steps=self._queue.executed_steps,
                queued_steps=queued,
                latency_p50_ns=self._latency.percentile_ns(50),
                latency_p99_ns=self._latency.percentile_ns(99),
                reasons=self._report.reasons.copy(),
            )
