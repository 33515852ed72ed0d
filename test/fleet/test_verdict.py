# SPDX-License-Identifier: Apache-2.0
"""What is good and what is wrong with a run."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.errors import Reason
from xinfer_ros.fleet.verdict import FleetResult, faults, fleet_result, result_of

from .reports import report, result


def test_healthy_fleet_has_no_faults() -> None:
    assert faults(result(report('r0'), report('r1')), 0.0) == []


def test_starved_ticks_are_a_fault_with_their_share() -> None:
    found = faults(result(report('r0', starved_ticks=3), report('r1')), 0.0)
    assert found == ['3 of 600 control ticks had no valid action (0.50 %)']


@pytest.mark.parametrize(('allowed', 'passes'), [(0.0049, False), (0.005, True), (0.01, True)])
def test_allowed_share_of_starved_ticks_passes(allowed: float, passes: bool) -> None:
    run = result(report('r0', starved_ticks=3), report('r1'))
    assert (faults(run, allowed) == []) is passes


def test_unanswered_requests_are_a_fault_whatever_is_allowed() -> None:
    run = result(report('r0', unanswered=2), report('r1', unanswered=1))
    assert faults(run, 1.0) == ['3 requests got no answer']


def test_answer_that_came_late_is_no_fault() -> None:
    """A request given up in the warm-up and answered after it makes the difference negative."""
    robot = result_of(report(unanswered=1), report(chunks=90, on_time=80))
    assert faults(FleetResult(robots=(robot,)), 0.0) == []


def test_misaddressed_chunks_are_a_fault_whatever_is_allowed() -> None:
    """SL-01: no chunk for somebody else, ever."""
    assert faults(result(report(misaddressed=1)), 1.0) == ['1 chunks were meant for somebody else']


def test_robot_without_a_chunk_is_named() -> None:
    run = result(report('r0'), report('r1', chunks=0, on_time=0))
    assert faults(run, 0.0) == ['r1 got no chunk']


def test_all_faults_are_told() -> None:
    run = result(
        report('r0', starved_ticks=300, unanswered=1, misaddressed=1, chunks=0, on_time=0)
    )
    assert len(faults(run, 0.5)) == 4


def test_only_what_happened_after_the_warm_up_counts() -> None:
    before = report(
        ticks=100, starved_ticks=40, unanswered=5, reasons=Counter({Reason.NOT_READY: 9})
    )
    after = report(
        ticks=400, starved_ticks=40, unanswered=5, chunks=80, on_time=70, requests=81,
        reasons=Counter({Reason.NOT_READY: 9, Reason.EXPIRED: 2}),
    )  # fmt: skip
    run = result_of(before, after)
    assert (run.ticks, run.starved_ticks, run.unanswered) == (300, 0, 0)
    assert (run.chunks, run.on_time, run.requests) == (30, 21, 31)
    assert run.reasons == {Reason.EXPIRED: 2}
    assert run.latency_p99_ns == after.latency_p99_ns
    assert faults(FleetResult(robots=(run,)), 0.0) == []


counters = st.integers(0, 1000)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(counters, counters, counters, counters), min_size=1, max_size=5))
def test_totals_and_shares_add_up(robots: list[tuple[int, int, int, int]]) -> None:
    run = result(
        *(
            report(f'r{i}', ticks=t + s, starved_ticks=s, chunks=c + o, on_time=o)
            for i, (t, s, c, o) in enumerate(robots)
        )
    )
    for field in dataclasses.fields(run.robots[0]):
        if field.name not in ('robot_id', 'reasons'):
            total = sum(getattr(robot, field.name) for robot in run.robots)
            assert run.total(field.name) == total
    assert 0 <= run.starved_share <= 1
    assert 0 <= run.on_time_share <= 1
    assert run.starved_share * max(run.total('ticks'), 1) == pytest.approx(
        run.total('starved_ticks')
    )
    assert (faults(run, 1.0) == []) == all(c + o for _, _, c, o in robots)


def test_fleet_that_did_nothing_has_shares_of_zero() -> None:
    run = result(report(ticks=0, chunks=0, on_time=0))
    assert (run.starved_share, run.on_time_share) == (0.0, 0.0)


def test_result_keeps_the_order_of_the_robots() -> None:
    reports = {name: report(name) for name in ('r2', 'r0', 'r1')}
    run = fleet_result(reports, reports)
    assert [robot.robot_id for robot in run.robots] == ['r2', 'r0', 'r1']
