# SPDX-License-Identifier: Apache-2.0
"""The default policy, compiled and readable."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core

from .driven_core import DrivenCore, Make, sharing_device

both = pytest.mark.parametrize('make', [native_core, reference_core])


@both
def test_urgent_request_starts_without_a_question(make: Make) -> None:
    """Due at 86, urgent within three times 31 ms."""
    core = DrivenCore(make, 'foresight')
    core.submit(0.0, 1, 90.0)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,))]
    assert core.decisions()[0].verdict is Verdict.ISSUED_PROTECTED


@both
def test_ordinary_request_starts_early_if_nobody_is_hurt(make: Make) -> None:
    core = DrivenCore(make, 'foresight')
    core.submit(0.0, 1, 400.0)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,))]
    assert core.decisions()[0].verdict is Verdict.ISSUED


@both
def test_ordinary_request_waits_if_the_rollout_finds_another_late(make: Make) -> None:
    """Alone, request 1 ends at 31 of 34 ms; with another beside it in ViT 4 later."""
    core = DrivenCore(make, 'foresight')
    core.submit(0.0, 1, 38.0)
    core.submit(0.0, 2, 400.0)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,))]
    deferred = core.decisions()[-1]
    assert (deferred.key, deferred.verdict) == (2, Verdict.DEFERRED_ROLLOUT)
    assert deferred.against == 1
    assert deferred.cost > deferred.slack + 0.03


@both
def test_ordinary_request_waits_for_a_foreseen_one(make: Make) -> None:
    """
    Robot 1 asks again at 180, is registered at 186, and would be done at 217 of 218 ms.

    Action of request 2 would run from 178 to 191, and longer beside it.
    """
    core = DrivenCore(make, 'foresight')
    core.submit(0.0, 1, 42.0)
    for at_ms in (0.0, 6.0, 15.0):
        core.dispatch(at_ms)
        core.complete(at_ms + 13.0, 1)
    core.submit(150.0, 2, 400.0)
    for at_ms in (150.0, 156.0):
        core.dispatch(at_ms)
        core.complete(at_ms + 9.0, 2)
    core.decisions()
    assert core.dispatch(178.0) == []
    (deferred,) = core.decisions()
    assert (deferred.key, deferred.verdict) == (2, Verdict.DEFERRED_ROLLOUT)
    assert deferred.against is None


@both
def test_announced_request_that_never_comes_is_not_waited_for_for_ever(make: Make) -> None:
    """Its picture could not be decoded, or the robot has left."""
    core = DrivenCore(make, 'foresight')
    core.announce(0.0, 3, 42.0)
    core.submit(300.0, 2, 5000.0)
    assert core.dispatch(300.0) == []
    assert core.dispatch(499.0) == []
    assert core.dispatch(501.0) == [(Stage.VIT, (2,))]


@both
def test_without_tries_ordinary_work_waits_until_it_is_urgent(make: Make) -> None:
    core = DrivenCore(make, 'foresight', tries=0)
    core.submit(0.0, 1, 400.0)
    assert core.dispatch(302.9) == []
    assert core.dispatch(303.1) == [(Stage.VIT, (1,))]  # due at 396, urgent 93 before


@both
def test_late_request_is_put_off_if_that_saves_others(make: Make) -> None:
    """One lane: the first blocks the others, and is late in any case."""
    device = sharing_device((1, 1, 1))
    core = DrivenCore(make, 'foresight_shed', device, hopeless_share=0.0)
    core.submit(0.0, 1, 30.0)
    core.submit(0.0, 2, 38.0)
    core.dispatch(0.0)
    put_off = core.decisions()[0]
    assert (put_off.key, put_off.verdict) == (1, Verdict.PUT_OFF)
    assert put_off.cost < put_off.slack - 0.3


@both
def test_request_that_is_long_late_costs_no_more_time_than_others(make: Make) -> None:
    """A budget of a nanosecond, an hour late, must not be made up for budget by budget."""
    core = DrivenCore(make, 'foresight')
    core.submit(0.0, 1, 1e-6)
    assert core.dispatch(3.6e6) == [(Stage.VIT, (1,))]
