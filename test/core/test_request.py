# SPDX-License-Identifier: Apache-2.0
"""Requests: deadlines and the age at which they are given up; stages in their order."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.request import Request, Unit, check_budget, retry_after_ns
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Reason, Rejected

MS = 1_000_000


def _request(budget_ns: int = 180 * MS) -> Request:
    return Request(
        key=1, robot=2, slot=3, arrival_ns=1000 * MS, budget_ns=budget_ns, reserved_ns=4 * MS,
        period_ns=180 * MS,
    )  # fmt: skip


@pytest.mark.parametrize(
    ('budget_ms', 'retry_ms'),
    [(1, 500), (180, 500), (249, 500), (250, 500), (251, 502), (1000, 2000), (60_000, 120_000)],
)
def test_request_is_given_up_after_twice_its_budget_but_not_before_half_a_second(
    budget_ms: int, retry_ms: int
) -> None:
    """CQ-04: max(2·B, 500 ms)."""
    assert retry_after_ns(budget_ms * MS) == retry_ms * MS


def test_deadline_leaves_the_reserved_time_to_the_way_back() -> None:
    assert _request().deadline_ns == (1000 + 180 - 4) * MS


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 60_000 * MS))
def test_server_drops_a_request_when_its_robot_gives_it_up(budget_ns: int) -> None:
    """Both sides use one rule, and the deadline always comes first."""
    request = _request(budget_ns)
    assert request.expires_ns == request.arrival_ns + retry_after_ns(budget_ns)
    assert request.deadline_ns < request.expires_ns


def test_requests_and_units_are_values_that_nobody_changes() -> None:
    request = _request()
    unit = Unit(number=1, stage=Stage.VIT, requests=(request,))
    assert unit == Unit(number=1, stage=Stage.VIT, requests=(_request(),))
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.budget_ns = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        unit.number = 2  # type: ignore[misc]


def test_stages_follow_one_another_and_end_with_action() -> None:
    assert list(Stage) == [Stage.VIT, Stage.PREFILL, Stage.ACTION]
    assert [stage.following for stage in Stage] == [Stage.PREFILL, Stage.ACTION, None]


@pytest.mark.parametrize('budget_ns', [-1, 0, 1, 999_999, 60_000_000_001, 10**21])
def test_budget_that_nobody_can_mean_is_refused(budget_ns: int) -> None:
    """SC-05."""
    with pytest.raises(Rejected) as caught:
        check_budget(budget_ns)
    assert caught.value.reason is Reason.REJECTED_BUDGET


@pytest.mark.parametrize('budget_ns', [1_000_000, 60_000_000_000])
def test_least_and_largest_budget_are_taken(budget_ns: int) -> None:
    check_budget(budget_ns)
