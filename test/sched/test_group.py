# SPDX-License-Identifier: Apache-2.0
"""Groups of requests: one through the whole pipeline at a time, or two in lockstep."""

from dataclasses import replace

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core

from .driven_core import DrivenCore, Launch, Make, sharing_device

VIT, PREFILL, ACTION = Stage


@pytest.fixture(params=[native_core, reference_core])
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = request.param
    return chosen


def _batching(size: int) -> Calibration:
    """Return a device that takes batches for nothing, one unit of each stage at once."""
    return replace(sharing_device((1, 1, 1)), batch_work=((1.0,) * size,) * 3)


def _through(core: DrivenCore, at_ms: float, first: list[Launch]) -> list[Launch]:
    """End what runs until nothing starts any more; return everything that ran."""
    ran, running = [], list(first)
    for _ in range(50):
        if not running:
            return ran
        stage, keys = running.pop(0)
        ran.append((stage, keys))
        core.complete(at_ms, keys[0])
        core.release(at_ms)
        running += core.dispatch(at_ms)
    raise AssertionError('it never ends')


def test_serial_serves_one_request_end_to_end_by_arrival(make: Make) -> None:
    core = DrivenCore(make, 'serial')
    core.submit(0.0, 1, 400.0)
    core.submit(0.0, 2, 90.0)
    first = core.dispatch(0.0)
    assert first == [(VIT, (1,))]
    assert _through(core, 1.0, first) == [(stage, (key,)) for key in (1, 2) for stage in Stage]


def test_batch_passes_the_stages_together_with_nothing_beside_it(make: Make) -> None:
    core = DrivenCore(make, 'dynamic_batch', _batching(4), max_batch=2, wait_ms=0.0)
    for key in (1, 2, 3):
        core.submit(0.0, key, 180.0)
    first = core.dispatch(0.0)
    ran = _through(core, 1.0, first)
    assert ran == [(stage, (1, 2)) for stage in Stage] + [(stage, (3,)) for stage in Stage]


def test_group_that_is_larger_than_a_unit_takes_the_lanes_that_are_there(make: Make) -> None:
    core = DrivenCore(make, 'dynamic_batch', sharing_device((2, 3, 3)), max_batch=3, wait_ms=0.0)
    for key in (1, 2, 3):
        core.submit(0.0, key, 180.0)
    assert core.dispatch(0.0) == [(VIT, (1,)), (VIT, (2,))]
    core.complete(1.0, 1)
    assert core.dispatch(1.0) == [(VIT, (3,))]  # and not the Prefill of the first
    core.complete(2.0, 2)
    assert core.dispatch(2.0) == []
    core.complete(3.0, 3)
    assert core.dispatch(3.0) == [(PREFILL, (1,)), (PREFILL, (2,)), (PREFILL, (3,))]


def test_first_of_a_batch_waits_for_others_but_not_longer_than_told(make: Make) -> None:
    core = DrivenCore(make, 'dynamic_batch', _batching(4), max_batch=3, wait_ms=20.0)
    core.submit(0.0, 1, 180.0)
    assert core.dispatch(0.0) == []
    core.submit(15.0, 2, 180.0)
    assert core.dispatch(15.0) == []
    assert [decision.verdict for decision in core.decisions()] == [Verdict.DEFERRED_BATCH] * 2
    assert core.dispatch(20.0) == [(VIT, (1, 2))]


def test_full_batch_leaves_at_once(make: Make) -> None:
    core = DrivenCore(make, 'dynamic_batch', _batching(4), max_batch=2, wait_ms=20.0)
    core.submit(0.0, 1, 180.0)
    core.submit(1.0, 2, 180.0)
    assert core.dispatch(1.0) == [(VIT, (1, 2))]


def test_others_go_on_when_a_unit_of_the_group_fails(make: Make) -> None:
    core = DrivenCore(make, 'dynamic_batch', sharing_device((2, 2, 2)), max_batch=2, wait_ms=0.0)
    core.submit(0.0, 1, 180.0)
    core.submit(0.0, 2, 180.0)
    core.dispatch(0.0)
    core.withdraw(1.0, 1)
    core.complete(2.0, 2)
    assert core.dispatch(2.0) == [(PREFILL, (2,))]


def _lockstep(make: Make, **changes: object) -> DrivenCore:
    """Return a core whose first group of two has passed its Context; two more wait."""
    core = DrivenCore(make, 'robion', _batching(4), **({'group': 2} | changes))
    for key in (1, 2, 3, 4):
        core.submit(0.0, key, 180.0)
    assert core.dispatch(0.0) == [(VIT, (1, 2))]
    core.complete(1.0, 1)
    assert core.dispatch(1.0) == [(PREFILL, (1, 2))]
    core.complete(2.0, 1)
    return core


def test_context_of_a_group_runs_beside_action_of_the_one_before(make: Make) -> None:
    core = _lockstep(make)
    assert core.dispatch(2.0) == [(ACTION, (1, 2)), (VIT, (3, 4))]


def test_answers_of_a_round_leave_at_its_end(make: Make) -> None:
    core = _lockstep(make)
    core.dispatch(2.0)
    assert list(core.complete(3.0, 1)) == []
    assert list(core.release(3.0)) == []
    core.complete(4.0, 3)
    assert core.dispatch(4.0) == [(PREFILL, (3, 4))]
    core.complete(5.0, 3)
    assert list(core.release(5.0)) == [1, 2]
    assert core.dispatch(5.0) == [(ACTION, (3, 4))]


def test_answers_leave_at_once_without_the_barrier(make: Make) -> None:
    core = _lockstep(make, publish_at_barrier=False)
    core.dispatch(2.0)
    assert list(core.complete(3.0, 1)) == [1, 2]


def test_answers_leave_although_the_rest_of_their_round_fails(make: Make) -> None:
    core = _lockstep(make)
    core.dispatch(2.0)
    core.complete(3.0, 1)
    core.withdraw(4.0, 3)
    assert list(core.release(4.0)) == [1, 2]


def test_round_waits_for_its_longer_half(make: Make) -> None:
    core = _lockstep(make)
    core.dispatch(2.0)
    core.submit(2.5, 5, 180.0)
    core.complete(3.0, 3)
    assert core.dispatch(3.0) == [(PREFILL, (3, 4))]
    core.complete(4.0, 3)
    assert core.dispatch(4.0) == []  # Action of the first group still runs
    core.complete(5.0, 1)
    assert list(core.release(5.0)) == [1, 2]
    assert core.dispatch(5.0) == [(ACTION, (3, 4)), (VIT, (5,))]
