# SPDX-License-Identifier: Apache-2.0
"""Common rounds: the ablation of asynchronous execution."""

import pytest

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.registry import make_scheduler
from xinfer_ros.sched.scheduler import Scheduler

MS = 1_000_000


def _scheduler() -> Scheduler:
    return make_scheduler('fifo', load_calibration('paper'), round_barrier=True)


def _submit(scheduler: Scheduler, key: int, now_ns: int = 0) -> None:
    request = Request(
        key=key, robot=key, slot=key, arrival_ns=now_ns, budget_ns=180 * MS, reserved_ns=0,
        period_ns=180 * MS,
    )  # fmt: skip
    scheduler.submit(request, now_ns)


def _keys(units: list[Unit]) -> list[int]:
    return [request.key for unit in units for request in unit.requests]


def _run_through(scheduler: Scheduler, units: list[Unit], now_ns: int) -> list[int]:
    """End every unit, and those that follow; return the keys in the order of their end."""
    ended = []
    while units:
        unit = units.pop(0)
        ended += [done.request.key for done in scheduler.complete(unit, now_ns)[0]]
        units += scheduler.dispatch(now_ns)
    return ended


def test_who_comes_during_a_round_waits_for_the_next_one() -> None:
    scheduler = _scheduler()
    _submit(scheduler, 1)
    first = scheduler.dispatch(0)
    _submit(scheduler, 2)
    _submit(scheduler, 3)
    assert _keys(first) == [1]
    assert scheduler.dispatch(MS) == []
    finished, _ = scheduler.complete(first[0], 5 * MS)
    assert finished == []
    units = scheduler.dispatch(5 * MS)
    assert _keys(units) == [1]  # its Prefill, and nobody's ViT
    assert _run_through(scheduler, units, 9 * MS)[:1] == [1]


def test_next_round_begins_with_all_that_have_come() -> None:
    scheduler = _scheduler()
    _submit(scheduler, 1)
    units = scheduler.dispatch(0)
    for key in (2, 3):
        _submit(scheduler, key)
    assert _run_through(scheduler, units, MS) == [1, 2, 3]


def test_request_that_waits_for_its_round_can_be_cancelled() -> None:
    scheduler = _scheduler()
    _submit(scheduler, 1)
    units = scheduler.dispatch(0)
    _submit(scheduler, 2)
    cancelled = scheduler.cancel(2, MS)
    assert cancelled is not None
    assert cancelled.key == 2
    assert _run_through(scheduler, units, MS) == [1]


@pytest.mark.parametrize('how', ['fail', 'cancel', 'expire'])
def test_round_whose_last_request_vanishes_is_over(how: str) -> None:
    scheduler = _scheduler()
    _submit(scheduler, 1)
    units = scheduler.dispatch(0)
    _submit(scheduler, 2, now_ns=400 * MS)
    if how == 'fail':
        scheduler.fail(units[0], MS)
    else:
        scheduler.complete(units[0], MS)  # now it waits for Prefill
        if how == 'cancel':
            scheduler.cancel(1, MS)
        else:
            assert [request.key for request in scheduler.expire(510 * MS)] == [1]
    assert _keys(scheduler.dispatch(511 * MS)) == [2]


def test_budget_of_a_request_that_waits_for_its_round_can_change() -> None:
    scheduler = make_scheduler('edf', load_calibration('paper'), round_barrier=True)
    _submit(scheduler, 1)
    units = scheduler.dispatch(0)
    _submit(scheduler, 2)
    _submit(scheduler, 3)
    scheduler.set_budget(3, 60 * MS)
    assert _run_through(scheduler, units, MS) == [1, 3, 2]
