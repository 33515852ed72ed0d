# SPDX-License-Identifier: Apache-2.0
"""The life of a robot behind a rough network, and the rules that it must keep at every instant."""

from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.request import retry_after_ns
from xinfer_ros.errors import Reason
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.commitment import rows_within
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.horizon import HorizonSettings
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.robot.session import Grant

from .driven_robot import MS, TICK_NS
from .rough_network import ARM, HORIZON, JOINTS, MAX_COMMITMENT, STEP_LIMIT, RoughNetwork

CYCLE_NS, CALM_NS, RECOVERY_NS = 60_000 * MS, 15_000 * MS, 7_000 * MS
SKIP_STEPS = 2


def _settings(mode: ExecutionMode, adapts: bool) -> ExecutorSettings:
    none = np.full(len(JOINTS), np.inf)
    step = np.where(np.arange(len(JOINTS)) == ARM, STEP_LIMIT, np.inf)
    horizon = HorizonSettings(
        shortest_ns=100 * MS, start_ns=180 * MS, longest_ns=2000 * MS,
        keyframe_spacing_ns=TICK_NS, compared=np.arange(len(JOINTS)) == ARM,
    )  # fmt: skip
    return ExecutorSettings(
        robot_id='r0',
        joint_names=JOINTS,
        keyframe_spacing_ns=TICK_NS,
        minimum_period_ns=180 * MS,
        backoff_ns=100 * MS,
        commitment_steps=6,
        budget_ns=180 * MS,
        commitment_margin_steps=1,
        mode=mode,
        discrete_joints=('request',),
        limits=RowLimits(joint_names=JOINTS, lower=-none, upper=none, velocity=none, step=step),
        horizon=horizon if adapts else None,
        tight_budget_ns=90 * MS,
    )


class RoughLife:
    """
    Drives an executor as its node does, and keeps the books beside it.

    A minute has 45 s of a bad network, of restarts, new tasks and episodes, stalls and budgets;
    then nothing happens for 15 s, in which the robot must come to move again and keep moving.

    :param seed: of everything that happens
    :param mode: how chunks follow each other
    :param adapts: whether the minimum period adapts
    """

    def __init__(self, seed: int, mode: ExecutionMode, adapts: bool) -> None:
        self.network = RoughNetwork(seed)
        self.executor = ChunkExecutor(_settings(mode, adapts))
        self.books = dict.fromkeys(
            ('requests', 'chunks', 'on_time', 'lost', 'late', 'superseded', 'violations',
             'overfrozen', 'ticks', 'starved', 'skipped', 'executed', 'episode', 'refused'), 0
        )  # fmt: skip
        self._mode, self._adapts, self._clock = mode, adapts, SimulatedClock(10**9)
        self._waiting: tuple[RequestDraft, int, int] | None = None  # draft, sent, budget
        self._drafts: dict[int, tuple[RequestDraft, int]] = {}  # and the task it was for
        self._lost: set[int] = set()
        self._task, self._arm, self._playing, self._queued = 0, 0.0, 0, 0
        self._is_moving, self._silent_ticks = False, 0

    def run(self, duration_ns: int) -> None:
        """Let the robot live for a time [ns]."""
        end_ns = self._clock.now_ns() + duration_ns
        while (now_ns := self._clock.now_ns()) < end_ns:
            self.network.is_calm = now_ns % CYCLE_NS >= CYCLE_NS - CALM_NS
            for delivery in self.network.due(now_ns):
                if isinstance(delivery.what, Grant):
                    self._granted(delivery.what, delivery.at_ns)
                else:
                    self._accept(delivery.what, delivery.at_ns)
            self._tick(0 if self.network.is_calm else self._happen())
            self._register(self._clock.now_ns())
            self._ask(self._clock.now_ns())
            self._clock.advance(TICK_NS)

    def _happen(self) -> int:
        """Let something happen, or mostly not; return the ticks that were missed."""
        kind = int(self.network.random.integers(600))
        if kind == 0:
            self.books['episode'] = self.executor.start_episode()
            self._waiting, self._queued, self._is_moving = None, 0, False
        elif kind <= 2:
            self._task += 1
            self.executor.supersede()
            self.books['superseded'] += self._waiting is not None
            self._waiting = None
        elif kind == 3:
            epoch = self.network.restart_server()
            if self.network.random.random() < 0.7:
                self.executor.session.server_announced(epoch, ready=True)
        elif kind <= 5:
            budget_ns = int(self.network.random.integers(60, 400)) * MS
            self.executor.set_budget(budget_ns)
            if self._waiting is not None:
                self._waiting = (*self._waiting[:2], budget_ns)
        elif kind <= 15:
            missed = int(self.network.random.integers(1, 9))
            self._clock.advance(missed * TICK_NS)
            return missed
        return 0

    def _register(self, now_ns: int) -> None:
        if self.executor.session.due(now_ns):
            self.executor.session.asked(now_ns)
            self.network.register(now_ns)

    def _granted(self, grant: Grant, now_ns: int) -> None:
        if self.executor.session.grant != grant and self._waiting is not None:
            self._give_up()
        self.executor.granted(grant, now_ns)

    def _give_up(self) -> None:
        assert self._waiting is not None
        self._lost.add(self._waiting[0].request_id)
        self.books['lost'] += 1
        self._waiting = None

    def _tick(self, missed: int) -> None:
        books = self.books
        row = self.executor.tick(missed if missed <= SKIP_STEPS else 0)
        assert (row is None) == (self._queued == 0)
        self._is_moving |= row is not None
        books['ticks'] += self._is_moving
        books['starved'] += self._is_moving and row is None
        self._silent_ticks = self._silent_ticks + 1 if row is None else 0
        since_calm_ns = self._clock.now_ns() % CYCLE_NS - (CYCLE_NS - CALM_NS)
        if since_calm_ns > RECOVERY_NS:
            assert self._silent_ticks <= (7 if self._mode is ExecutionMode.SYNC else 0)
        if row is None:
            return
        assert row.step == books['executed'] + row.skipped_steps == round(row.values[0])
        assert row.skipped_steps <= (missed if missed <= SKIP_STEPS else 0)
        assert row.values[1] == self._playing
        assert row.values[2] == self._drafts[self._playing][1]
        assert abs(row.values[ARM] - self._arm) <= STEP_LIMIT + 1e-5
        books['executed'], self._arm = row.step + 1, float(row.values[ARM])
        books['skipped'] += row.skipped_steps
        self._queued -= row.skipped_steps + 1

    def _ask(self, now_ns: int) -> None:
        if self._waiting is not None:
            _, sent_ns, budget_ns = self._waiting
            if now_ns - sent_ns >= retry_after_ns(budget_ns):
                self._give_up()
        if not self.executor.request_is_due(now_ns):
            return
        assert self._waiting is None
        state = np.array([0.0, 0.0, 0.0, self._arm], np.float32)
        draft = self.executor.begin_request(now_ns, Sensed(state=state))
        assert draft is not None
        self._check(draft)
        self.books['requests'] += 1
        self._waiting = draft, now_ns, draft.budget_ns
        self._drafts[draft.request_id] = draft, self._task
        self.network.ask(draft, self._arm, self._task, now_ns)

    def _check(self, draft: RequestDraft) -> None:
        d, told = draft.commitment_steps, self._mode is ExecutionMode.RTC
        assert draft.request_id == self.books['requests'] + 1
        assert draft.executed_steps == self.books['executed']
        assert len(draft.leftover) == (self._queued if told else 0)
        covered = rows_within(draft.budget_ns, TICK_NS)
        assert 0 <= d <= min(len(draft.leftover), MAX_COMMITMENT, covered)
        assert self._mode is not ExecutionMode.SYNC or self._queued == 0
        if not self._adapts:
            assert draft.minimum_period_ns == 180 * MS
        elif self.books['chunks']:
            assert d * TICK_NS <= draft.minimum_period_ns <= (HORIZON - d) * TICK_NS

    def _accept(self, answer: Answer, now_ns: int) -> None:
        reason = self.executor.accept(answer, now_ns)
        grant, waiting = self.executor.session.latest, self._waiting
        mine = (
            grant is not None
            and answer.session == grant.session
            and answer.episode == self.books['episode']
            and (answer.reason is not Reason.OK or answer.epoch == grant.epoch)
        )
        if mine and answer.request_id in self._lost:
            self._lost.remove(answer.request_id)
            self.books['late'] += 1
        if reason is not Reason.OK:
            self.books['refused'] += 1
            if mine and waiting is not None and answer.request_id == waiting[0].request_id:
                in_place = answer.start_step == waiting[0].executed_steps
                self._waiting = None if in_place else waiting
            return
        assert mine
        assert waiting is not None
        draft, sent_ns, budget_ns = waiting
        assert answer.request_id == draft.request_id
        assert self._drafts[draft.request_id][1] == self._task
        self._waiting, self._playing = None, draft.request_id
        self._count(answer, draft, now_ns - sent_ns <= budget_ns)
        self._queued = len(answer.rows) - (self.books['executed'] - draft.executed_steps)

    def _count(self, answer: Answer, draft: RequestDraft, on_time: bool) -> None:
        row = self.books['executed'] - draft.executed_steps
        self.books['chunks'] += 1
        self.books['on_time'] += on_time
        if self._mode is ExecutionMode.RTC:
            self.books['violations'] += row > answer.frozen_steps
            self.books['overfrozen'] += max(answer.frozen_steps - row, 0)

    def reported(self) -> dict[str, Any]:
        """Return what the executor says of itself, in the words of the books."""
        report = self.executor.report()
        return {
            'requests': report.requests,
            'chunks': report.chunks,
            'on_time': report.on_time,
            'lost': report.unanswered + self.books['late'],
            'late': self.books['late'],
            'superseded': report.superseded,
            'violations': report.handoff_violations,
            'overfrozen': report.overfrozen_steps,
            'ticks': report.ticks,
            'starved': report.starved_ticks,
            'skipped': report.skipped_steps,
            'executed': report.executed_steps,
            'episode': report.episode,
            'refused': report.reasons.total(),
        }
