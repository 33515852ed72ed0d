# SPDX-License-Identifier: Apache-2.0
"""The baselines, compiled and readable."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core

from .driven_core import DrivenCore, Make, sharing_device

both = pytest.mark.parametrize('make', [native_core, reference_core])


@both
def test_fifo_starts_in_order_of_arrival_whatever_is_due(make: Make) -> None:
    core = DrivenCore(make, 'fifo', sharing_device((2, 1, 1)))
    for key, budget_ms in ((1, 400.0), (2, 300.0), (3, 90.0)):
        core.submit(0.0, key, budget_ms)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,)), (Stage.VIT, (2,))]
    assert core.dispatch(0.0) == []


@both
def test_edf_starts_what_is_due_first(make: Make) -> None:
    core = DrivenCore(make, 'edf', lane_limits=(2, 1, 1))
    for key, budget_ms in ((1, 400.0), (2, 300.0), (3, 90.0)):
        core.submit(0.0, key, budget_ms)
    assert core.dispatch(0.0) == [(Stage.VIT, (3,)), (Stage.VIT, (2,))]


@both
@pytest.mark.parametrize('policy', ['fifo', 'edf'])
def test_what_is_nearer_to_its_end_starts_first(make: Make, policy: str) -> None:
    core = DrivenCore(make, policy, sharing_device((1, 1, 1)))
    core.submit(0.0, 1, 400.0)
    core.dispatch(0.0)
    core.submit(5.0, 2, 90.0)
    core.complete(6.0, 1)
    assert core.dispatch(6.0) == [(Stage.PREFILL, (1,)), (Stage.VIT, (2,))]


@both
def test_slack_gate_lets_ordinary_work_wait_behind_who_is_short_of_slack(make: Make) -> None:
    """Request 1 starts with 25 ms of slack; running, 56 - (6 + 17 + 25 + 3) = 5 are left."""
    core = DrivenCore(make, 'slack_gate', threshold_ms=40.0)
    core.submit(0.0, 1, 60.0)
    core.submit(0.0, 2, 400.0)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,))]
    started, deferred = core.decisions()
    assert started.verdict is Verdict.ISSUED_PROTECTED
    assert (deferred.key, deferred.verdict) == (2, Verdict.DEFERRED_GATE)
    assert deferred.against == 1
    assert deferred.slack == pytest.approx(5.0)


@both
def test_slack_gate_is_open_while_nobody_is_short(make: Make) -> None:
    core = DrivenCore(make, 'slack_gate', threshold_ms=4.9)
    core.submit(0.0, 1, 60.0)
    core.submit(0.0, 2, 400.0)
    assert len(core.dispatch(0.0)) == 2
    assert [decision.verdict for decision in core.decisions()] == [Verdict.ISSUED] * 2
