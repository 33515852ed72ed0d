# SPDX-License-Identifier: Apache-2.0
"""What the engine tells of itself, driven through its pipeline."""

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.codec import MAX_RECORD_BYTES, decode, encode
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.lane_watch import MAX_UNITS, MAX_WAITING, NO_ROOM
from xinfer_ros.engine.pipeline import BEAT_NS, Pipeline
from xinfer_ros.engine.records import Beat, Record, Submit
from xinfer_ros.engine.seen import Named, SeenUnit, SeenWaiting, Timeline, Watch
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.registry import make_scheduler

MS = 1_000_000
PAPER = load_calibration('paper')


class Bench:
    """A pipeline under a policy that holds patient requests back for urgent ones."""

    def __init__(self, policy: str = 'slack_gate') -> None:
        self.issued: list[Unit] = []
        self.sent: list[Record] = []
        self._pipeline = Pipeline(
            make_scheduler(policy, PAPER),
            lambda unit, state_ids: self.issued.append(unit),
            self.sent.append,
            num_states=400,
            unit_timeout_ns=10_000 * MS,
        )

    def take(self, record: Record | UnitEnd | None, at_ms: int) -> None:
        self._pipeline.step(record, at_ms * MS)

    def submit(self, key: int, at_ms: int, budget_ms: int) -> None:
        request = Request(
            key=key, robot=key % 4, slot=key, arrival_ns=at_ms * MS, budget_ns=budget_ms * MS,
            reserved_ns=4 * MS, period_ns=180 * MS,
        )  # fmt: skip
        self.take(Submit(request=request), at_ms)

    def end(self, unit: Unit, at_ms: int) -> None:
        self.take(UnitEnd(unit=unit, started_ns=0, ended_ns=at_ms * MS), at_ms)

    def beat(self, number: int) -> tuple[Timeline | None, Beat]:
        """Return what the beat of this number tells."""
        self.sent.clear()
        self._pipeline.step(None, number * BEAT_NS)
        beat, timeline = self.sent[-1], self.sent[0]
        assert isinstance(beat, Beat)
        return (timeline if isinstance(timeline, Timeline) else None), beat


def test_beat_tells_how_long_lanes_were_busy_and_what_waits_runs_and_is_protected() -> None:
    bench = Bench()
    bench.beat(0)
    bench.submit(1, 10, budget_ms=60)
    bench.submit(2, 10, budget_ms=400)
    bench.end(bench.issued[0], 40)  # ViT of the urgent one; its Prefill starts
    _, beat = bench.beat(1)
    assert beat.busy_ns == (30 * MS, BEAT_NS - 40 * MS, 0)
    assert (beat.running, beat.waiting) == ((0, 1, 0), (1, 0, 0))
    assert beat.protected == 1
    assert beat.verdicts[Verdict.ISSUED_PROTECTED] == 2
    assert beat.verdicts[Verdict.DEFERRED_GATE] == 1  # said again after every event, counted once
    assert beat.predictions == 1
    assert 0 < beat.prediction_error_ns < 30 * MS


def test_two_units_at_once_keep_a_lane_busy_no_longer_than_one() -> None:
    bench = Bench('fifo')
    bench.beat(0)
    for key in (1, 2):
        bench.submit(key, 10 * key, budget_ms=400)
    for unit, at_ms in zip(list(bench.issued), (50, 70), strict=True):
        bench.end(unit, at_ms)
    _, beat = bench.beat(1)
    assert beat.busy_ns[Stage.VIT] == 60 * MS


def test_no_timeline_is_told_until_somebody_watches_and_none_after_it() -> None:
    bench = Bench()
    assert bench.beat(0)[0] is None
    bench.take(Watch(on=True), 20)
    assert bench.beat(1)[0] == Timeline(from_ns=20 * MS, to_ns=BEAT_NS, units=(), waiting=())
    bench.take(Watch(on=False), 260)
    assert bench.beat(2)[0] is None


def test_timeline_tells_units_and_why_requests_wait_by_the_names_of_robots() -> None:
    bench = Bench()
    bench.beat(0)
    bench.take(Watch(on=True), 5)
    bench.take(Named(robot=1, name='left'), 5)
    bench.submit(1, 10, budget_ms=60)
    bench.submit(2, 12, budget_ms=400)
    bench.end(bench.issued[0], 40)
    first, _ = bench.beat(1)
    assert first is not None
    assert [(unit.number, unit.stage, unit.protected) for unit in first.units] == [
        (1, Stage.VIT, True), (2, Stage.PREFILL, True),
    ]  # fmt: skip
    assert [unit.started_ns for unit in first.units] == [10 * MS, 40 * MS]
    assert [unit.ended_ns for unit in first.units] == [40 * MS, None]
    assert (first.units[0].robots, first.units[0].keys) == ((1,), (1,))
    (waiting,) = first.waiting
    assert waiting == SeenWaiting(
        robot=2, key=2, stage=Stage.VIT, since_ns=12 * MS, why='waits behind request 1 of left'
    )
    bench.end(bench.issued[1], 260)
    second, _ = bench.beat(2)
    assert second is not None
    assert second.from_ns == first.to_ns
    assert [unit.number for unit in second.units if unit.ended_ns is not None] == [2]


def test_request_that_the_policy_has_not_looked_at_waits_for_room() -> None:
    bench = Bench('fifo')
    bench.beat(0)
    bench.take(Watch(on=True), 5)
    for key in range(1, 9):
        bench.submit(key, 10, budget_ms=400)
    timeline, beat = bench.beat(1)
    assert timeline is not None
    assert len(timeline.waiting) == beat.waiting[Stage.VIT] > 0
    assert {waiting.why for waiting in timeline.waiting} == {NO_ROOM}


def test_more_than_fits_into_a_record_is_left_out_and_counted() -> None:
    bench = Bench('fifo')
    bench.beat(0)
    bench.take(Watch(on=True), 5)
    for key in range(1, 241):
        bench.submit(key, 6, budget_ms=60_000)
    for place in range(2 * MAX_UNITS):
        bench.end(bench.issued[place], 9)
    timeline, beat = bench.beat(1)
    assert timeline is not None
    assert len(timeline.waiting) == MAX_WAITING
    assert timeline.left_out == MAX_UNITS + sum(beat.waiting) - MAX_WAITING


def test_largest_timeline_fits_into_a_record_and_comes_out_as_it_went_in() -> None:
    unit = SeenUnit(
        number=10**7, stage=Stage.ACTION, started_ns=10**17, ended_ns=10**17, protected=True,
        robots=(255,) * 8, keys=(10**8,) * 8,
    )  # fmt: skip
    waiting = SeenWaiting(
        robot=255, key=10**8, stage=Stage.VIT, since_ns=10**17, why='?' * 120 + 'n' * 64
    )
    timeline = Timeline(
        from_ns=0, to_ns=10**17, units=(unit,) * MAX_UNITS, waiting=(waiting,) * MAX_WAITING
    )
    packet = encode(timeline)
    assert len(packet) < MAX_RECORD_BYTES
    assert decode(packet) == timeline
    for record in (Watch(on=True), Named(robot=3, name='left')):
        assert decode(encode(record)) == record
