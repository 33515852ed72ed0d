# SPDX-License-Identifier: Apache-2.0
"""The pipeline step by step, in simulated time and without a thread."""

from dataclasses import replace

from xinfer_ros.core.request import QueueSight, Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.pipeline import BEAT_NS, TICK_NS, DecisionLog, Pipeline
from xinfer_ros.engine.records import (
    Announce,
    Beat,
    Cancel,
    Done,
    Dropped,
    Record,
    SetBudget,
    Submit,
)
from xinfer_ros.engine.seen import Named
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.registry import make_scheduler

MS = 1_000_000
PAPER = load_calibration('paper')
SLOT = 100  # of request 0: no slot has the number of a request


class Bench:
    """A pipeline with what it has issued and sent; a test plays the lanes."""

    def __init__(
        self,
        policy: str = 'fifo',
        stages: tuple[Stage, ...] = tuple(Stage),
        max_held: int = 0,
        decision_log: DecisionLog | None = None,
        calibration: Calibration = PAPER,
    ) -> None:
        self.issued: list[Unit] = []
        self.sent: list[Record] = []
        scheduler = make_scheduler(policy, calibration, max_held=max_held)
        self.pipeline = Pipeline(
            scheduler,
            lambda unit, state_ids: self.issued.append(unit),
            self.sent.append,
            num_states=max_held or 32,
            unit_timeout_ns=10_000 * MS,
            stages=stages,
            decision_log=decision_log,
        )

    def submit(self, key: int, now_ns: int, budget_ns: int = 180 * MS) -> None:
        """Hand in a request that has just arrived."""
        request = Request(
            key=key, robot=key, slot=SLOT + key, arrival_ns=now_ns, budget_ns=budget_ns,
            reserved_ns=4 * MS, period_ns=180 * MS,
        )  # fmt: skip
        self.pipeline.step(Submit(request=request), now_ns)

    def end(self, unit: Unit, now_ns: int, error: Exception | None = None) -> None:
        """Let a unit end that has taken 3 ms."""
        end = UnitEnd(unit=unit, started_ns=now_ns - 3 * MS, ended_ns=now_ns, error=error)
        self.pipeline.step(end, now_ns)

    def results(self) -> list[Record]:
        """Return what was sent but for signs of life."""
        return [record for record in self.sent if not isinstance(record, Beat)]


def test_request_passes_the_lanes_and_its_time_is_told_by_part() -> None:
    bench = Bench()
    bench.submit(1, 0)
    for stage in Stage:
        assert bench.issued[-1].stage is stage
        bench.end(bench.issued[-1], (stage + 1) * 5 * MS)
    (done,) = bench.results()
    assert done == Done(
        key=1,
        queue_ns=6 * MS,
        vit_ns=3 * MS,
        prefill_ns=3 * MS,
        action_ns=3 * MS,
        ask_after_ns=0,
    )


def _beat(oldest_unit_ns: int) -> Beat:
    correction = (1.0, 1.0, 1.0)
    return Beat(
        oldest_unit_ns=oldest_unit_ns, slowdown=1.0, correction=correction, mirror_error=0.0
    )


def test_idle_engine_wakes_for_its_sign_of_life_alone() -> None:
    bench = Bench()
    for beat in range(4):
        assert bench.pipeline.wake_ns == beat * BEAT_NS
        bench.pipeline.step(None, beat * BEAT_NS)
    assert bench.sent == [_beat(0)] * 4


def test_sign_of_life_tells_the_age_of_the_oldest_unit() -> None:
    bench = Bench()
    bench.submit(1, 0)
    bench.submit(2, 100 * MS)
    bench.pipeline.step(None, BEAT_NS)
    beat = bench.sent[-1]
    assert isinstance(beat, Beat)
    assert beat.oldest_unit_ns == BEAT_NS


def _held_back() -> Bench:
    """Return a pipeline whose policy holds a patient request back for an urgent one."""
    bench = Bench('slack_gate')
    bench.submit(1, 0, 60 * MS)
    bench.submit(2, 0, 400 * MS)
    assert [unit.requests[0].key for unit in bench.issued] == [1]
    return bench


def test_work_that_the_policy_holds_back_is_looked_at_again_after_each_tick() -> None:
    bench = _held_back()
    for tick in (1, 2, 3):
        assert bench.pipeline.wake_ns == tick * TICK_NS
        bench.pipeline.step(None, tick * TICK_NS)
    assert len(bench.issued) == 1


def test_an_event_between_two_ticks_does_not_put_off_the_next_one() -> None:
    bench = _held_back()
    bench.pipeline.step(SetBudget(key=1, budget_ns=61 * MS), TICK_NS // 2)
    assert bench.pipeline.wake_ns == TICK_NS


def test_announcement_alone_starts_nothing() -> None:
    bench = _held_back()
    sight = QueueSight(executed_steps=4, leftover_steps=6, horizon_steps=16, spacing_ns=33 * MS)
    announce = Announce(robot=3, arrival_ns=MS, budget_ns=90 * MS, period_ns=180 * MS, sight=sight)
    bench.pipeline.step(announce, MS)
    assert len(bench.issued) == 1
    assert bench.results() == []
    assert bench.pipeline.wake_ns == TICK_NS


def test_engine_wakes_when_a_request_that_waits_expires() -> None:
    bench = Bench()
    for key in range(1, 5):  # the lane of ViT takes three
        bench.submit(key, 0)
    bench.pipeline.step(None, 400 * MS)  # a sign of life; the next one is due at 650 ms
    assert bench.pipeline.wake_ns == 500 * MS
    bench.pipeline.step(None, 500 * MS)
    (dropped,) = bench.results()
    assert isinstance(dropped, Dropped)
    assert (dropped.key, dropped.reason) == (4, Reason.EXPIRED)


def test_cancelled_request_that_runs_is_dropped_at_the_boundary() -> None:
    bench = Bench()
    bench.submit(1, 0)
    bench.pipeline.step(Cancel(key=1), MS)
    assert bench.results() == []
    bench.end(bench.issued[0], 5 * MS)
    assert bench.results() == [Dropped(key=1, reason=Reason.SUPERSEDED, detail='')]
    assert len(bench.issued) == 1


def test_refusal_of_a_stage_does_not_count_as_a_failure_of_the_device() -> None:
    bench = Bench()
    for key in range(1, 20):
        bench.submit(key, key * MS)
        bench.end(bench.issued[-1], key * MS, Rejected(Reason.REJECTED_INSTRUCTION, 'too long'))
    reasons = [r.reason for r in bench.results() if isinstance(r, Dropped)]
    assert reasons == [Reason.REJECTED_INSTRUCTION] * 19


def test_stages_that_a_model_lacks_take_no_time_and_no_lane() -> None:
    bench = Bench(stages=(Stage.ACTION,))
    bench.submit(1, 0)
    (unit,) = bench.issued
    assert unit.stage is Stage.ACTION
    bench.end(unit, 7 * MS)
    (done,) = bench.results()
    assert isinstance(done, Done)
    assert (done.vit_ns, done.prefill_ns, done.action_ns) == (0, 0, 3 * MS)


def test_requests_wait_for_a_state_of_the_model() -> None:
    """Backpressure: ViT has room for three, the model has states for two."""
    bench = Bench(max_held=2)
    for key in (1, 2, 3):
        bench.submit(key, key)
    assert [unit.requests[0].key for unit in bench.issued] == [1, 2]
    for number in range(3):
        bench.end(bench.issued[2 * number], (number + 1) * 5 * MS)
        if number < 2:
            bench.end(bench.issued[2 * number + 1], (number + 1) * 5 * MS)
    assert bench.issued[-1].requests[0].key == 3
    assert bench.issued[-1].stage is Stage.VIT


def test_refused_or_cancelled_member_of_a_batch_takes_nobody_with_it() -> None:
    narrow = replace(
        PAPER, rates=PAPER.rates[:, :2, :2, :2], batch_work=((1.0,), (1.0, 1.6, 2.2, 2.8), (1.0,))
    )
    bench = Bench('foresight', calibration=narrow)
    for key in range(1, 6):
        bench.submit(key, 0)
    for _ in range(5):  # every ViT, while the first Prefill runs
        bench.end([unit for unit in bench.issued if unit.stage is Stage.VIT][-1], MS)
    prefill = [unit for unit in bench.issued if unit.stage is Stage.PREFILL]
    bench.end(prefill[0], 2 * MS)
    batch = bench.issued[-1]
    if batch.stage is not Stage.PREFILL:
        batch = bench.issued[-2]
    assert [request.key for request in batch.requests] == [2, 3, 4, 5]
    bench.pipeline.step(Cancel(key=3), 2 * MS)
    refusal = Rejected(Reason.REJECTED_INSTRUCTION, 'too long')
    end = UnitEnd(unit=batch, started_ns=2 * MS, ended_ns=4 * MS, refused={SLOT + 4: refusal})
    bench.pipeline.step(end, 4 * MS)
    assert {r.key: r.reason for r in bench.results() if isinstance(r, Dropped)} == {
        3: Reason.SUPERSEDED,
        4: Reason.REJECTED_INSTRUCTION,
    }
    for _ in range(3):
        action = [unit for unit in bench.issued if unit.stage is Stage.ACTION][-1]
        bench.end(action, 6 * MS)
    assert [r.key for r in bench.results() if isinstance(r, Done)] == [1, 2, 5]


def test_refusal_is_told_although_the_answers_of_its_round_are_held_back() -> None:
    batching = replace(PAPER, rates=PAPER.rates[:, :2, :2, :2], batch_work=((1.0, 1.5),) * 3)
    bench = Bench('robion', calibration=batching)
    for key in (1, 2, 3):
        bench.submit(key, 0)
    for at_ms in (3, 6, 9, 12):  # the first, alone, and the ViT and Prefill of both others
        bench.end(
            [unit for unit in bench.issued if unit.stage is not Stage.ACTION][-1], at_ms * MS
        )
    assert bench.results() == []
    action = next(unit for unit in bench.issued if unit.stage is Stage.ACTION)
    refusal = Rejected(Reason.OUT_OF_MEMORY, 'too much')
    end = UnitEnd(unit=action, started_ns=0, ended_ns=13 * MS, refused={SLOT + 1: refusal})
    bench.pipeline.step(end, 13 * MS)
    assert bench.results() == [Dropped(key=1, reason=Reason.OUT_OF_MEMORY, detail='too much')]


def test_states_of_requests_that_end_without_an_answer_are_free_again() -> None:
    """Whatever ends them: a cancel, a refusal, a failure; there are states for two only."""
    bench = Bench(max_held=2)
    for key in range(1, 13):
        bench.submit(key, key * MS)
        vit = bench.issued[-1]
        assert [request.key for request in vit.requests] == [key]
        refusal = {SLOT + key: Rejected(Reason.OUT_OF_MEMORY, 'full')} if key % 4 == 1 else {}
        if key % 4 == 2:
            bench.pipeline.step(Cancel(key=key), key * MS)
        error = RuntimeError('broken') if key % 4 == 3 else None
        end = UnitEnd(unit=vit, started_ns=0, ended_ns=key * MS, refused=refusal, error=error)
        bench.pipeline.step(end, key * MS)
        if key % 4 == 0:  # waits for Prefill, which never ends
            bench.pipeline.step(Cancel(key=key), key * MS)
            bench.end(bench.issued[-1], key * MS)
    assert len(bench.results()) == 12


def test_sign_of_life_tells_how_much_longer_stages_take_than_the_calibration_says() -> None:
    bench = Bench('foresight')
    bench.submit(1, 0)
    bench.pipeline.step(None, 200 * MS)
    bench.end(bench.issued[0], 200 * MS)
    bench.pipeline.step(None, BEAT_NS)
    beat = bench.sent[-1]
    assert isinstance(beat, Beat)
    vit, prefill, action = beat.correction
    assert vit > 1.1
    assert (prefill, action) == (1.0, 1.0)
    assert 1.0 < beat.slowdown < vit


def test_decision_log_is_drained_with_every_sign_of_life_and_knows_the_robots() -> None:
    told: list[object] = []

    class Log:
        def named(self, robot: int, name: str) -> None:
            told.append((robot, name))

        def drain(self) -> None:
            told.append('drain')

    bench = Bench(decision_log=Log())
    bench.pipeline.step(Named(robot=3, name='arm'), 0)
    bench.submit(1, 5 * MS)
    bench.pipeline.step(None, BEAT_NS)
    assert told == [(3, 'arm'), 'drain', 'drain']
