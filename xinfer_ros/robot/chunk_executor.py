# SPDX-License-Identifier: Apache-2.0
"""The robot side of the loop: which row is next, when to ask, and which answers to believe."""

import threading
from dataclasses import replace

from xinfer_ros.core.chunk import Answer, Rows
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.action_queue import Handoff, QueuedRow
from xinfer_ros.robot.budgets.budget_source import BudgetContext, BudgetWish
from xinfer_ros.robot.budgets.planner import PlannerBudget
from xinfer_ros.robot.chunk_ingress import ChunkIngress
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.horizon import HorizonAdaptation
from xinfer_ros.robot.next_send import InFlight, NextSend
from xinfer_ros.robot.request_ledger import RequestDraft, RequestLedger
from xinfer_ros.robot.round_trips import RoundTrips
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.robot.session import Grant, SessionKeeper


class ChunkExecutor:
    """
    Executes chunks row by row and keeps one request in flight; knows nothing of ROS.

    ``tick`` and ``begin_request`` belong to the control thread, the rest to any. Nothing waits.
    """

    def __init__(self, settings: ExecutorSettings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._queue = settings.action_queue()
        self._ledger = RequestLedger(NextSend(settings.minimum_period_ns, settings.backoff_ns))
        self._planner = PlannerBudget()
        self._budget = settings.budget(self._planner)
        self._wish = BudgetWish(budget_ns=settings.budget_ns, reason='')
        self._log = settings.motion_log()
        self._commitment = settings.commitment_estimator()  # None: fixed
        self._horizon = None if settings.horizon is None else HorizonAdaptation(settings.horizon)
        self._chunk_steps = 0  # H of the latest chunk
        self._episode = 0
        self._moving = False  # ticks before the first row of an episode are not starved
        self._due_since_ns: int | None = None
        self._at_rest: Rows | None = None  # as measured at the request in flight
        self._trips = RoundTrips()
        self.last_refusal = ''
        self._ingress = ChunkIngress(settings.joint_names, settings.keyframe_spacing_ns)
        self._report = RobotReport(robot_id=settings.robot_id, execution_mode=settings.mode.value)
        self.session = SessionKeeper()

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the robot's joints in its own order."""
        return self._settings.joint_names

    def tick(self, skip_steps: int = 0) -> QueuedRow | None:
        """
        Take the row of this control tick; None means hold: there is no valid action.

        :param skip_steps: rows to leave out, since as many ticks were missed [steps]
        """
        row = self._queue.pop(skip_steps)
        if row is None:
            self.hold_tick(is_moving=self._moving)
            return None
        with self._lock:
            self._moving = True
            self._report.ticks += 1
            self._report.skipped_steps += row.skipped_steps
            self._log.add(row)
        return row

    def hold_tick(self, *, is_moving: bool = True) -> None:
        """Count a tick without a valid action, though there may be rows."""
        with self._lock:
            self._moving = is_moving
            self._report.ticks += is_moving
            self._report.starved_ticks += is_moving
            self._log.hold()

    def led_to(self, values: Rows) -> None:
        """Note where a hold that moves the robot has just commanded it: rows start from there."""
        with self._lock:
            if self._queue.start_from(values):
                self._at_rest = None  # it was there when it was measured, and is no more
            self._log.lead(values)

    def request_is_due(self, now_ns: int) -> bool:
        """Return whether an observation should leave now; gives up a request that was lost."""
        with self._lock:
            if self._ledger.give_up_if_lost(now_ns):
                self.session.doubted()
            waits = self._settings.mode is ExecutionMode.SYNC and len(self._queue) > 0
            due = self._ledger.next_send.is_due(now_ns) and not waits
            if due and self._due_since_ns is None:
                self._due_since_ns = now_ns
            return due and self.session.grant is not None

    def begin_request(self, now_ns: int, sensed: Sensed | None = None) -> RequestDraft | None:
        """
        Fix what the next observation says of the queue, and count it as sent.

        :param sensed: what the robot measures at this instant
        :returns: None if the session was lost in the meantime
        """
        with self._lock:
            grant, settings = self.session.grant, self._settings
            if grant is None:
                return None
            executed_steps, leftover = self._queue.snapshot()
            tied = leftover if settings.mode is ExecutionMode.RTC else leftover[:0]
            self._wish = self._wished(now_ns, leftover, sensed)
            budget_ns = self._wish.budget_ns
            wanted_steps = self._commitment_steps(grant, budget_ns)
            self._count_send(now_ns, min(wanted_steps, len(tied)))
            if (horizon := self._horizon) is not None:
                self._ledger.next_send.minimum_period_ns = self._adapted(horizon, wanted_steps)
            self._at_rest = None if sensed is None else sensed.rest(settings.rows_are_velocities)
            return RequestDraft(
                session=grant.session,
                episode=self._episode,
                request_id=self._ledger.send(now_ns, budget_ns, executed_steps),
                executed_steps=executed_steps,
                leftover=tied,
                commitment_steps=self._report.commitment_steps,
                budget_ns=budget_ns,
                minimum_period_ns=self._ledger.next_send.minimum_period_ns,
                ticks=self._report.ticks,
                starved_ticks=self._report.starved_ticks,
                answered_request_id=self._trips.request_id,
                round_trip_ns=self._trips.round_trip_ns,
            )

    def _wished(self, now_ns: int, leftover: Rows, sensed: Sensed | None) -> BudgetWish:
        return self._budget.wish(
            BudgetContext(
                now_ns=now_ns,
                joint_names=self._settings.joint_names,
                keyframe_spacing_ns=self._settings.keyframe_spacing_ns,
                executed=self._log.rows(),
                planned=leftover,
                effort=None if sensed is None else sensed.effort,
            )
        )

    def _commitment_steps(self, grant: Grant, budget_ns: int) -> int:
        if self._commitment is None:
            return self._settings.commitment_steps
        return self._commitment.steps(budget_ns, grant.max_commitment_steps)

    def _count_send(self, now_ns: int, commitment_steps: int) -> None:
        due_ns = now_ns if self._due_since_ns is None else self._due_since_ns
        self._report.trigger_misses += now_ns - due_ns >= self._settings.keyframe_spacing_ns
        self._due_since_ns = None
        self._report.requests += 1
        self._report.commitment_steps = commitment_steps
        self.session.sent(now_ns)

    def accept(self, answer: Answer, now_ns: int) -> Reason:
        """
        Take in an answer: merge its rows, or count why not; a bad one changes nothing.

        The rows are used at once; a pace that the server asks for shifts the next request alone.

        :returns: OK if the rows were merged
        """
        with self._lock:
            try:
                self._check_address(answer)
                request = self._ledger.match(answer)
            except Rejected as refusal:
                return self.refuse(refusal)
            self._trips.answered(request, answer, now_ns)
            is_served = answer.reason is Reason.OK
            error = self._merge(answer) if is_served else Rejected(answer.reason, answer.detail)
            pace_ns = min(max(answer.ask_after_ns, 0), request.budget_ns)  # a server may be wrong
            self._ledger.next_send.answered(now_ns, with_rows=error is None, ask_after_ns=pace_ns)
            if error is not None:
                if error.reason is Reason.UNKNOWN_SESSION:
                    self.session.unknown()
                return self.refuse(error)
            self._count_chunk(request, now_ns - request.sent_ns)
            return Reason.OK

    def _count_chunk(self, request: InFlight, latency_ns: int) -> None:
        self._ledger.accepted(request)
        self._trips.accepted(latency_ns)
        if self._commitment is not None:
            self._commitment.add(latency_ns)
        self._report.chunks += 1
        self._report.on_time += latency_ns <= request.budget_ns

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
        self._ledger.check_episode(answer, self._episode)
        if answer.reason is Reason.OK and answer.epoch != grant.epoch:
            raise Rejected(Reason.WRONG_EPOCH, f'epoch {answer.epoch} is over')

    def _merge(self, answer: Answer) -> Rejected | None:
        try:
            rows = self._ingress.rows(answer)
            handoff = self._queue.merge(answer.start_step, rows, self._at_rest)
        except Rejected as refusal:
            return refusal
        self._count_handoff(answer, handoff)
        if self._horizon is not None:
            frozen_steps = answer.frozen_steps - handoff.row
            self._horizon.observe(rows[handoff.row :], handoff.replaced, max(frozen_steps, 0))
            self._chunk_steps = len(rows)
        return None

    def _count_handoff(self, answer: Answer, handoff: Handoff) -> None:
        """Note whether the frozen rows of a chunk covered the time until it took over."""
        self._report.degraded_chunks += answer.degraded
        if self._settings.mode is not ExecutionMode.RTC:
            return  # nothing was promised
        frozen_steps = min(answer.frozen_steps, len(answer.rows))  # a server may be wrong
        self._report.handoff_violations += handoff.row > frozen_steps
        self._report.overfrozen_steps += max(frozen_steps - handoff.row, 0)

    def _adapted(self, horizon: HorizonAdaptation, steps: int) -> int:
        """Return the period after this request; ``d <= s <= H - d``, even if less was left."""
        spacing_ns = self._settings.keyframe_spacing_ns
        return horizon.period_ns(
            self._wish.budget_ns <= self._settings.tight_budget_ns,
            least_ns=steps * spacing_ns,
            most_ns=(self._chunk_steps - steps) * spacing_ns if self._chunk_steps else None,
        )

    def granted(self, grant: Grant, now_ns: int) -> None:
        """Take in a (renewed) registration; requests of another epoch are given up."""
        with self._lock:
            before, latest = self.session.grant, self.session.latest
            self.session.granted(grant, now_ns)
            if self._commitment is not None and latest != grant:
                self._commitment.begin_session()
            if before != grant:
                self._ledger.give_up()

    def start_episode(self) -> int:
        """Start over with an empty queue, refuse what is in flight; return the episode."""
        with self._lock:
            self._episode += 1
            self._moving = False
            self._queue.clear()
            self._log.clear()
            self._ledger.forget()
            return self._episode

    def supersede(self) -> None:
        """Withdraw the request in flight, since the task has changed; the next leaves at once."""
        with self._lock:
            self._queue.part()
            self._ledger.supersede()

    def set_budget(self, budget_ns: int, source: str = '') -> None:
        """
        Set the response budget of the request in flight and of those to come [ns].

        :param source: who asks for it and why
        :raises Rejected: REJECTED_BUDGET
        """
        with self._lock:
            self._planner.replace(budget_ns, source)
            self._ledger.next_send.set_budget(budget_ns)

    def report(self) -> RobotReport:
        """Return a copy of what this robot has seen so far."""
        with self._lock:
            grant = self.session.grant
            queued = len(self._queue)
            phase = ExecutorPhase.RUNNING if queued else ExecutorPhase.HOLDING
            report = replace(
                self._report,
                phase=phase if grant is not None or queued else ExecutorPhase.REGISTERING,
                session=grant.session if grant is not None else 0,
                epoch=grant.epoch if grant is not None else 0,
                episode=self._episode,
                executed_steps=self._queue.executed_steps,
                queued_steps=queued,
                budget_ns=self._wish.budget_ns,
                budget_reason=self._wish.reason,
                reasons=self._report.reasons.copy(),
            )
            for part in (self._ledger, self._trips, self._log):
                part.fill(report)
            return report
