# SPDX-License-Identifier: Apache-2.0
"""The server's pace: what it tells the scheduler of arrivals, and the robots of their next one."""

import numpy as np
import pytest

from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.core.request import QueueSight
from xinfer_ros.engine.records import Announce, Submit
from xinfer_ros.predict.calibration import load_calibration

from .scripted_engine import CONTRACT, SPACING_NS, Bench
from .simulated_fleet import MS, S, SimulatedFleet

ROWS = np.zeros((8, 3), np.float32)


@pytest.fixture
def bench() -> Bench:
    """Give a front end whose engine is ready."""
    bench = Bench()
    bench.engine.become_ready(7)
    return bench


def test_the_engine_hears_of_an_arrival_before_the_request_is_prepared(bench: Bench) -> None:
    robot = bench.robot('r0')
    arrival_ns = bench.clock.now_ns()
    bench.ask(robot, 1, budget_ns=90 * MS, minimum_period_ns=150 * MS)
    announce, submit = bench.engine.sent
    assert announce == Announce(
        robot=robot.number,
        arrival_ns=arrival_ns,
        budget_ns=90 * MS,
        period_ns=150 * MS,
        sight=QueueSight(
            executed_steps=0,
            leftover_steps=0,
            horizon_steps=CONTRACT.horizon,
            spacing_ns=SPACING_NS,
        ),
    )
    assert isinstance(submit, Submit)
    assert (submit.request.robot, submit.request.period_ns) == (robot.number, 150 * MS)


def test_a_request_that_cannot_be_prepared_was_announced_and_is_never_submitted(
    bench: Bench,
) -> None:
    """The scheduler forgets it by itself: ``Scheduler.expire``."""
    picture = CameraFrame(
        name='top', compressed=True, encoding='jpeg', height=0, width=0, step=0,
        is_bigendian=False, data=b'no picture',
    )  # fmt: skip
    bench.ask(bench.robot('r0'), 1, images=(picture,))
    assert bench.reasons() == ['REJECTED_IMAGE']
    assert [type(record) for record in bench.engine.sent] == [Announce]


def test_an_observation_that_is_refused_is_not_announced(bench: Bench) -> None:
    bench.ask(bench.robot('r0'), 1, budget_ns=0)
    assert bench.engine.sent == []


@pytest.mark.parametrize(('pace_ms', 'told_ms'), [(0, 0), (150, 150), (180, 180), (500, 180)])
def test_pace_reaches_the_robot_with_its_rows_and_never_exceeds_the_budget(
    bench: Bench, pace_ms: int, told_ms: int
) -> None:
    bench.ask(bench.robot('r0'), 1)
    bench.engine.finish(bench.engine.submitted()[0], ROWS, pace_ms * MS)
    answer = bench.answers[0][1]
    assert answer.ask_after_ns == told_ms * MS
    assert len(answer.rows) == 8


def test_an_answer_without_rows_holds_no_pace(bench: Bench) -> None:
    bench.ask(bench.robot('r0'), 1)
    bench.engine.finish(bench.engine.submitted()[0], np.full_like(ROWS, np.nan), 100 * MS)
    assert bench.answers[0][1].ask_after_ns == 0


def test_numbers_of_robots_stay_small_however_many_come_and_go(bench: Bench) -> None:
    """The scheduler keeps a place for every number up to the largest."""
    stays = bench.robot('stays')
    for index in range(20):
        guest = bench.robot(f'guest{index}')
        assert {stays.number, guest.number} == {0, 1}
        bench.clock.advance(4 * S)
        bench.ask(stays, index + 1)
        bench.clock.advance(2 * S)
        assert bench.front_end.forget_silent() == [guest]


def test_the_default_policy_paces_robots_with_time_to_spare_and_makes_room() -> None:
    """Ten robots with 400 ms would ask for 55 responses/s; the device is left some slack."""
    fleet = SimulatedFleet(load_calibration('soft'))
    members = [fleet.join(budget_ms=400, after_ms=18.0 * index) for index in range(10)]
    fleet.time.run(10.0)
    outcomes = [o for member in members for o in member.since(5 * S)]
    assert all(o.latency_ns <= o.budget_ns for o in outcomes)
    longest = max(
        after.sent_ns - before.sent_ns
        for member in members
        for before, after in zip(member.outcomes, member.outcomes[1:], strict=False)
    )
    assert 180 * MS <= longest <= 400 * MS + 10 * MS
