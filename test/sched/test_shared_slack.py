# SPDX-License-Identifier: Apache-2.0
"""Algorithms 1 and 2 of XInfer worked out by hand, for the compiled and the readable one."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core

from .driven_core import DrivenCore, Make

both = pytest.mark.parametrize('make', [native_core, reference_core])


def _beside_ordinary(make: Make, budget_ms: float, **changes: object) -> DrivenCore:
    """Return a core with an ordinary request 1 in ViT since 0, and request 2 just arrived."""
    core = DrivenCore(make, 'xinfer', **changes)
    core.submit(0.0, 1, 400.0)
    assert core.dispatch(0.0) == [(Stage.VIT, (1,))]
    core.submit(0.0, 2, budget_ms)
    assert core.dispatch(0.0) == [(Stage.VIT, (2,))]
    return core


@both
@pytest.mark.parametrize(
    ('budget_ms', 'verdict'), [(64.9, Verdict.ISSUED_PROTECTED), (65.1, Verdict.ISSUED)]
)
def test_promoted_is_whose_slack_is_less_than_the_residual_that_blocks(
    make: Make, budget_ms: float, verdict: Verdict
) -> None:
    """Algorithm 2: n^f is one ViT unit, so R = 10 + 17 + 25 + 3; B = 2 + 4; l = b - 4."""
    assert _beside_ordinary(make, budget_ms).decisions()[-1].verdict is verdict


@both
@pytest.mark.parametrize(
    ('budget_ms', 'verdict'), [(58.9, Verdict.ISSUED_PROTECTED), (59.1, Verdict.ISSUED)]
)
def test_zero_slack_promotion_asks_for_no_blocking(
    make: Make, budget_ms: float, verdict: Verdict
) -> None:
    core = _beside_ordinary(make, budget_ms, zero_slack_promotion=True)
    assert core.decisions()[-1].verdict is verdict


@both
@pytest.mark.parametrize(
    ('budget_ms', 'verdict'), [(34.9, Verdict.ISSUED), (35.1, Verdict.ISSUED_PROTECTED)]
)
def test_who_is_late_even_alone_is_not_protected(
    make: Make, budget_ms: float, verdict: Verdict
) -> None:
    """L: l - t < R(0) = 31, with l = b - 4."""
    core = _beside_ordinary(make, budget_ms, strict_gating=True)
    assert core.decisions()[-1].verdict is verdict


@both
def test_ordinary_work_waits_if_it_costs_more_than_a_protected_request_has(make: Make) -> None:
    """
    Equation 4 at 12, request 2 in Prefill, request 1 wants to.

    R_2(n^f) = 9 + 25 + 3, so sigma = 60.9 - 12 - 37; with another Prefill unit 17 + 37 + 3.
    """
    core = _beside_ordinary(make, 64.9)
    core.complete(12.0, 1)
    core.complete(12.0, 2)
    core.decisions()
    assert core.dispatch(12.0) == [(Stage.PREFILL, (2,))]
    deferred = core.decisions()[-1]
    assert (deferred.key, deferred.verdict) == (1, Verdict.DEFERRED_CURRENT)
    assert deferred.against == 2
    assert deferred.slack == pytest.approx(11.9)
    assert deferred.cost == pytest.approx(20.0)


@both
def test_ordinary_work_starts_if_a_protected_request_can_afford_it(make: Make) -> None:
    """At 21, request 2 in Action: sigma = 60.9 - 21 - 16, the cost is 12."""
    core = _beside_ordinary(make, 64.9)
    core.complete(12.0, 1)
    core.complete(12.0, 2)
    core.dispatch(12.0)
    core.complete(21.0, 2)
    assert core.dispatch(21.0) == [(Stage.ACTION, (2,)), (Stage.PREFILL, (1,))]


@both
def test_nothing_ordinary_starts_while_a_protected_request_has_no_slack(make: Make) -> None:
    """Reading 7. Under two ViT units R_2 = 10 + 25 + 37 + 3 = 75, under three 14 + 33 + 49 + 3."""
    core = _beside_ordinary(make, 64.9)
    core.decisions()
    core.submit(0.0, 3, 400.0)
    assert core.dispatch(0.0) == []
    (deferred,) = core.decisions()
    assert deferred.verdict is Verdict.DEFERRED_CURRENT
    assert deferred.slack == pytest.approx(60.9 - 75.0)
    assert deferred.cost == pytest.approx(24.0)
    assert deferred.protected_at_ms is None


@both
def test_with_strict_gating_ordinary_work_waits_for_whoever_is_protected(make: Make) -> None:
    core = _beside_ordinary(make, 64.9, strict_gating=True)
    core.complete(12.0, 1)
    core.complete(12.0, 2)
    core.dispatch(12.0)
    core.complete(21.0, 2)
    core.decisions()
    assert core.dispatch(21.0) == [(Stage.ACTION, (2,))]
    deferred = core.decisions()[-1]
    assert (deferred.verdict, deferred.against) == (Verdict.DEFERRED_GATE, 2)


@both
def test_entry_only_checks_nothing_after_vit(make: Make) -> None:
    core = _beside_ordinary(make, 64.9, entry_only=True)
    core.complete(12.0, 1)
    core.complete(12.0, 2)
    assert core.dispatch(12.0) == [(Stage.PREFILL, (2,)), (Stage.PREFILL, (1,))]
    core.submit(12.0, 3, 400.0)
    assert core.dispatch(12.0) == []


def _after_tight_request(make: Make, **changes: object) -> DrivenCore:
    """Return a core on which request 1, budget 60, was registered at 0 and is done."""
    core = DrivenCore(make, 'xinfer', **changes)
    core.submit(0.0, 1, 60.0)
    for at_ms in (0.0, 6.0, 15.0):
        core.dispatch(at_ms)
        core.complete(at_ms + 13.0, 1)
    core.decisions()
    return core


@both
def test_ordinary_work_waits_for_a_foreseen_request_that_it_would_make_late(make: Make) -> None:
    """
    One arrival in 180 ms is foreseen 180 ms after it, while the candidate runs: 175 to 185.

    It would need 4 + 6 + 10 + 17 + 25 + 3 = 65 of 60 ms.
    """
    core = _after_tight_request(make)
    core.submit(175.0, 2, 400.0)
    assert core.dispatch(175.0) == []
    (deferred,) = core.decisions()
    assert deferred.verdict is Verdict.DEFERRED_FORECAST
    assert deferred.foreseen_ms == pytest.approx(180.0)
    assert deferred.cost == pytest.approx(65.0)
    assert deferred.slack == pytest.approx(-5.0)
    assert deferred.against is None
    assert core.dispatch(179.9) == []
    assert core.dispatch(180.0) == [(Stage.VIT, (2,))]  # its registration is out of the window


@both
@pytest.mark.parametrize('at_ms', [169.9, 180.1])
def test_request_foreseen_outside_of_the_run_of_a_candidate_does_not_count(
    make: Make, at_ms: float
) -> None:
    core = _after_tight_request(make)
    core.submit(at_ms, 2, 400.0)
    assert core.dispatch(at_ms) == [(Stage.VIT, (2,))]


@both
def test_forecast_that_is_due_after_the_candidate_does_not_count(make: Make) -> None:
    core = _after_tight_request(make)
    core.submit(175.0, 2, 64.9)
    assert core.dispatch(175.0) == [(Stage.VIT, (2,))]


@both
def test_without_arrival_awareness_nothing_is_foreseen(make: Make) -> None:
    core = _after_tight_request(make, arrival_aware=False)
    core.submit(175.0, 2, 400.0)
    assert core.dispatch(175.0) == [(Stage.VIT, (2,))]
