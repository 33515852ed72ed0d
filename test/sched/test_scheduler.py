# SPDX-License-Identifier: Apache-2.0
"""The scheduler: stage order, lanes, and one end for every request."""

import pytest

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.registry import make_scheduler
from xinfer_ros.sched.scheduler import Scheduler

from .requests import MS, device, request


def fifo() -> Scheduler:
    """Return a scheduler in arrival order, one unit on each lane."""
    return make_scheduler('fifo', device())


def batching() -> Scheduler:
    """Return a scheduler that batches; requests that are due within a second start at once."""
    return make_scheduler('foresight', device(max_batch=4), urgent_ms=1000.0)


def _keys(units: list[Unit]) -> list[tuple[Stage, list[int]]]:
    return [(unit.stage, [r.key for r in unit.requests]) for unit in units]


def test_request_passes_its_stages_in_order_and_is_finished() -> None:
    scheduler = fifo()
    only = request(1)
    scheduler.submit(only, 0)
    for stage in Stage:
        (unit,) = scheduler.dispatch(0)
        assert (unit.stage, unit.requests) == (stage, (only,))
        assert scheduler.dispatch(0) == []
        finished, dropped = scheduler.complete(unit, 0)
        assert [done.request for done in finished] == ([only] if stage is Stage.ACTION else [])
        assert dropped == []
    assert scheduler.dispatch(0) == []


def test_lane_takes_no_more_units_than_its_limit() -> None:
    scheduler = make_scheduler('fifo', device((2, 1, 1)))
    for key in range(1, 6):
        scheduler.submit(request(key), 0)
    units = scheduler.dispatch(0)
    assert _keys(units) == [(Stage.VIT, [1]), (Stage.VIT, [2])]
    scheduler.complete(units[0], 0)
    assert _keys(scheduler.dispatch(0)) == [(Stage.PREFILL, [1]), (Stage.VIT, [3])]


def test_lanes_work_side_by_side() -> None:
    scheduler = fifo()
    for key in (1, 2, 3):
        scheduler.submit(request(key), 0)
    (first,) = scheduler.dispatch(0)
    scheduler.complete(first, 0)
    prefill, vit = scheduler.dispatch(0)
    scheduler.complete(vit, 0)
    scheduler.complete(prefill, 0)
    assert _keys(scheduler.dispatch(0)) == [
        (Stage.ACTION, [1]),
        (Stage.PREFILL, [2]),
        (Stage.VIT, [3]),
    ]


def test_only_work_beside_a_free_lane_waits() -> None:
    """A driver asks again after a tick while that may help; before a full lane it can not."""
    gate = make_scheduler('slack_gate', device((2, 1, 1)), threshold_ms=40.0)
    gate.submit(request(1, budget_ns=40 * MS), 0)
    gate.submit(request(2, budget_ns=2000 * MS), 0)
    assert _keys(gate.dispatch(0)) == [(Stage.VIT, [1])]
    assert gate.waits
    full = fifo()
    full.submit(request(1), 0)
    full.submit(request(2), 0)
    assert _keys(full.dispatch(0)) == [(Stage.VIT, [1])]
    assert not full.waits


def test_cancelled_request_that_waits_is_gone_at_once() -> None:
    """SC-03: a superseded request is not computed."""
    scheduler = fifo()
    waiting = request(2)
    scheduler.submit(request(1), 0)
    scheduler.submit(waiting, 0)
    (unit,) = scheduler.dispatch(0)
    assert scheduler.cancel(2, 0) == waiting
    assert scheduler.cancel(2, 0) is None
    scheduler.complete(unit, 0)
    assert _keys(scheduler.dispatch(0)) == [(Stage.PREFILL, [1])]


def test_cancelled_request_that_runs_is_dropped_at_the_end_of_its_unit() -> None:
    scheduler = fifo()
    scheduler.submit(request(1), 0)
    (unit,) = scheduler.dispatch(0)
    assert scheduler.cancel(1, 0) is None
    assert scheduler.cancel(1, 0) is None
    finished, dropped = scheduler.complete(unit, 0)
    assert (finished, [r.key for r in dropped]) == ([], [1])
    assert scheduler.dispatch(0) == []


def test_request_cancelled_in_its_last_stage_is_dropped_and_not_finished() -> None:
    scheduler = fifo()
    scheduler.submit(request(1), 0)
    for _ in range(2):
        scheduler.complete(scheduler.dispatch(0)[0], 0)
    (unit,) = scheduler.dispatch(0)
    scheduler.cancel(1, 0)
    finished, dropped = scheduler.complete(unit, 0)
    assert (finished, [r.key for r in dropped]) == ([], [1])


def test_unknown_request_cannot_be_cancelled() -> None:
    scheduler = fifo()
    assert scheduler.cancel(7, 0) is None
    scheduler.submit(request(7), 0)
    (unit,) = scheduler.dispatch(0)
    assert scheduler.complete(unit, 0) == ([], [])
    assert _keys(scheduler.dispatch(0)) == [(Stage.PREFILL, [7])]


def test_waiting_request_expires_when_its_robot_has_given_up() -> None:
    scheduler = fifo()
    for key, arrival_ms in ((1, 0), (2, 0), (3, 100)):
        scheduler.submit(request(key, arrival_ms * MS), 100 * MS)
    scheduler.dispatch(100 * MS)
    assert scheduler.next_expiry_ns == 500 * MS
    assert scheduler.expire(500 * MS - 1) == []
    assert [r.key for r in scheduler.expire(500 * MS)] == [2]
    assert scheduler.expire(500 * MS) == []
    assert scheduler.next_expiry_ns == 600 * MS


def test_running_request_does_not_expire_before_its_unit_ends() -> None:
    scheduler = fifo()
    scheduler.submit(request(1), 0)
    (unit,) = scheduler.dispatch(0)
    assert scheduler.next_expiry_ns is None
    assert scheduler.expire(10**12) == []
    scheduler.complete(unit, 10**12)
    assert [r.key for r in scheduler.expire(10**12)] == [1]


def test_failed_unit_ends_its_requests_and_frees_its_lane() -> None:
    scheduler = batching()
    for key in (1, 2):
        scheduler.submit(request(key), 0)
    (unit,) = scheduler.dispatch(0)
    scheduler.cancel(2, 0)
    assert [r.key for r in scheduler.fail(unit, 0)] == [1, 2]
    scheduler.submit(request(3), 0)
    (following,) = scheduler.dispatch(0)
    assert scheduler.complete(following, 0) == ([], [])


@pytest.mark.parametrize('fails', [False, True])
def test_nothing_is_remembered_of_a_cancelled_request_that_has_ended(fails: bool) -> None:
    """SL-07: what a request leaves behind would add up over hours."""
    scheduler = fifo()
    for is_cancelled in (True, False):
        scheduler.submit(request(1), 0)
        (unit,) = scheduler.dispatch(0)
        if is_cancelled:
            scheduler.cancel(1, 0)
        if is_cancelled and fails:
            scheduler.fail(unit, 0)
        else:
            _, dropped = scheduler.complete(unit, 0)
            assert bool(dropped) is is_cancelled


def test_only_the_cancelled_request_of_a_batch_is_dropped() -> None:
    scheduler = batching()
    for key in (1, 2, 3):
        scheduler.submit(request(key), 0)
    (unit,) = scheduler.dispatch(0)
    assert [r.key for r in unit.requests] == [1, 2, 3]
    scheduler.cancel(2, 0)
    finished, dropped = scheduler.complete(unit, 0)
    assert (finished, [r.key for r in dropped]) == ([], [2])
    assert _keys(scheduler.dispatch(0)) == [(Stage.PREFILL, [1, 3])]


@pytest.mark.parametrize('runs', [False, True])
def test_budget_of_a_request_can_change_while_it_waits_or_runs(runs: bool) -> None:
    scheduler = fifo()
    scheduler.submit(request(1), 0)
    unit = scheduler.dispatch(0)[0] if runs else None
    scheduler.set_budget(1, 1000 * MS)
    scheduler.set_budget(99, 1 * MS)
    if unit is not None:
        scheduler.complete(unit, 0)
    assert scheduler.expire(2000 * MS - 1) == []
    (expired,) = scheduler.expire(2000 * MS)
    assert (expired.key, expired.budget_ns) == (1, 1000 * MS)


def _held_back() -> tuple[Scheduler, Unit]:
    """Return a scheduler that has held one answer back, and the unit that its round waits for."""
    scheduler = make_scheduler('robion', device(), group=1)
    for key in (1, 2):
        scheduler.submit(request(key), 0)
    for _ in range(2):
        (unit,) = scheduler.dispatch(0)
        scheduler.complete(unit, 0)
    action, vit = scheduler.dispatch(0)
    assert scheduler.complete(action, 0) == ([], [])
    assert scheduler.release(0) == ([], [])
    return scheduler, vit


def test_answer_that_is_held_back_leaves_at_the_end_of_its_round() -> None:
    scheduler, vit = _held_back()
    scheduler.fail(vit, 0)
    finished, dropped = scheduler.release(0)
    assert ([done.request.key for done in finished], dropped) == ([1], [])


def test_request_cancelled_while_its_answer_is_held_back_is_dropped() -> None:
    scheduler, vit = _held_back()
    assert scheduler.cancel(1, 0) is None
    scheduler.fail(vit, 0)
    assert scheduler.release(0) == ([], [request(1)])


def test_new_budget_changes_who_is_first() -> None:
    scheduler = make_scheduler('edf', device())
    for key in (1, 2):
        scheduler.submit(request(key), 0)
    scheduler.set_budget(2, 90 * MS)
    assert _keys(scheduler.dispatch(0)) == [(Stage.VIT, [2])]


def _serve(scheduler: Scheduler, asked: Request, now_ns: int) -> int:
    """Serve one request that has the device for itself; return the pace of its robot."""
    scheduler.announce(asked.robot, asked.arrival_ns, asked.budget_ns, asked.period_ns, now_ns)
    scheduler.submit(asked, now_ns)
    for _ in Stage:
        (unit,) = scheduler.dispatch(now_ns)
        now_ns += 5 * MS
        finished, _ = scheduler.complete(unit, now_ns)
    return finished[0].ask_after_ns


def test_robots_with_time_to_spare_are_asked_back_later_when_the_fleet_is_large() -> None:
    scheduler = make_scheduler('foresight', device(), pacing_rate_per_ms=0.01)
    patient = [_serve(scheduler, request(k, budget_ns=400 * MS), 0) for k in range(1, 2)]
    assert patient == [0]  # alone: as it likes
    for key in range(2, 6):
        pace_ns = _serve(scheduler, request(key, key * 20 * MS, 400 * MS), key * 20 * MS)
    assert 180 * MS < pace_ns <= 400 * MS


def test_device_that_is_slower_than_its_calibration_is_noticed() -> None:
    scheduler = make_scheduler('foresight', device())
    assert scheduler.slowdown == 1.0
    for key in range(1, 200):
        _serve(scheduler, request(key, key * 100 * MS, robot=1), key * 100 * MS)
    # stages of 5 ms less 0.1 ms of overhead, where 2, 3 and 4 ms of work stand in the calibration
    assert scheduler.slowdown == pytest.approx(3 * 4.9 / 9.0, rel=0.02)
    assert make_scheduler('fifo', device()).slowdown == 1.0


def test_announced_request_that_came_expires_by_its_own_budget() -> None:
    scheduler = fifo()
    scheduler.announce(3, 0, 90 * MS, 180 * MS, 0)
    scheduler.submit(request(1, robot=3, budget_ns=400 * MS), 5 * MS)
    assert scheduler.next_expiry_ns == 800 * MS
