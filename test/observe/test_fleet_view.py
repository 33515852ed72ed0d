# SPDX-License-Identifier: Apache-2.0
"""What the view counts of a real front end, on a simulated clock."""

import gc
import math
import threading

import numpy as np
import pytest
from engine.scripted_engine import observation

from xinfer_ros.core.health import Level
from xinfer_ros.engine.records import Beat, Dropped
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.observe.robot_window import MAX_ENTRIES

from .viewed_fleet import MS, S, ViewedFleet


@pytest.fixture
def fleet() -> ViewedFleet:
    """Give a fleet without robots whose engine is ready."""
    return ViewedFleet()


def test_rates_and_shares_are_those_of_the_window(fleet: ViewedFleet) -> None:
    """Budget 180 ms, of which 4 are reserved: 176 ms are on time, 177 are late."""
    robot = fleet.robot()
    for request_id, ms in enumerate([30] * 30 + [176] * 8 + [177, 250], 1):
        fleet.serve(robot, request_id, ms)
        fleet.pass_ms(250 - ms)
    status = fleet.status()
    assert (status.requests, status.responses) == (40, 40)
    assert status.responses_hz == pytest.approx(4.0, rel=0.01)
    assert status.goodput_hz == pytest.approx(3.8, rel=0.01)
    assert status.attainment == pytest.approx(38 / 40)
    assert (status.latency_p50_ns, status.latency_p99_ns // MS) == (30 * MS, 221)
    assert fleet.of().attainment == status.attainment
    fleet.pass_ms(9_000)
    fleet.serve(robot, 41, 30)
    fleet.pass_ms(990)
    assert fleet.status().attainment == 1.0  # what is older than ten seconds is forgotten
    assert fleet.status().responses_hz == pytest.approx(0.1)
    assert fleet.status().responses == 41  # but not by the counters


def test_rates_of_a_newcomer_are_over_the_time_since_it_came(fleet: ViewedFleet) -> None:
    fleet.pass_ms(60_000)
    robot = fleet.robot()
    for request_id in range(1, 11):
        fleet.serve(robot, request_id, 30)
        fleet.pass_ms(170)
    assert fleet.of().responses_hz == pytest.approx(5.0)


def test_nothing_is_known_before_anything_has_happened(fleet: ViewedFleet) -> None:
    fleet.robot()
    status = fleet.status()
    assert math.isnan(status.attainment)
    assert math.isnan(status.starved_share)
    assert math.isnan(status.prediction_error_ms)
    assert (status.state, status.model, status.epoch) == (ServerPhase.READY, 'scripted', 7)
    assert (status.slots_used, status.num_slots, status.max_robots) == (0, 4, 4)
    assert (status.level, fleet.of().level) == (Level.OK, Level.OK)
    assert fleet.of().text == 'registered; it asks for nothing at present'


def test_a_changed_budget_is_the_one_that_counts(fleet: ViewedFleet) -> None:
    robot = fleet.robot()
    fleet.bench.ask(robot, 1)
    fleet.bench.front_end.set_budget(robot, 60 * MS)
    fleet.pass_ms(100)
    fleet.bench.engine.finish(fleet.bench.engine.submitted()[-1], np.zeros((8, 3), np.float32))
    assert fleet.status().attainment == 0.0


def test_answers_without_rows_are_counted_by_reason(fleet: ViewedFleet) -> None:
    robot = fleet.robot()
    fleet.bench.ask(robot, 1, budget_ns=1)
    fleet.bench.ask(robot, 2)
    fleet.bench.ask(robot, 3)
    key = fleet.bench.engine.submitted()[-1].key
    fleet.bench.engine.drop(Dropped(key=key, reason=Reason.EXPIRED, detail='no lane'))
    status = fleet.status()
    assert status.reasons == {
        Reason.REJECTED_BUDGET: 1, Reason.SUPERSEDED: 1, Reason.EXPIRED: 1
    }  # fmt: skip
    assert (status.requests, status.responses) == (3, 0)
    assert (fleet.of().requests, fleet.of().refused, fleet.of().in_flight) == (3, 3, False)


def test_starvation_is_what_robots_tell_and_a_restart_of_one_is_no_jump(
    fleet: ViewedFleet,
) -> None:
    robot = fleet.robot()
    told = [(100, 50), (110, 50), (120, 55), (5, 5), (15, 5)]  # its executor starts anew
    for request_id, (ticks, starved) in enumerate(told, 1):
        fleet.serve(robot, request_id, 30, ticks=ticks, starved_ticks=starved)
    assert fleet.of().starved_share == pytest.approx(5 / 30)
    assert fleet.view.totals().ticks == 30
    assert fleet.view.totals().starved_ticks == 5


def test_slots_in_use_and_requests_in_flight_are_seen(fleet: ViewedFleet) -> None:
    robot = fleet.robot()
    fleet.bench.ask(robot, 1, commitment_steps=3, leftover=np.zeros((5, 3), np.float32))
    assert fleet.status().slots_used == 1
    assert (fleet.of().in_flight, fleet.of().commitment_steps) == (True, 3)
    assert (fleet.of().budget_ns, fleet.of().minimum_period_ns) == (180 * MS, 180 * MS)


def test_queue_of_a_robot_is_foreseen_row_by_row(fleet: ViewedFleet) -> None:
    """Rows of 30 ms: five left at the observation; the chunk of eight starts at its step 40."""
    robot = fleet.robot()
    leftover = np.zeros((5, 3), np.float32)
    fleet.bench.ask(robot, 1, executed_steps=40, leftover=leftover)
    assert fleet.of().queued_steps == 5
    fleet.pass_ms(65)
    assert fleet.of().queued_steps == 2  # two executed and the third begun
    fleet.bench.engine.finish(fleet.bench.engine.submitted()[-1], np.zeros((8, 3), np.float32))
    fleet.pass_ms(1)
    assert fleet.of().queued_steps == 5  # eight rows less those two and that third
    fleet.pass_ms(10_000)
    assert fleet.of().queued_steps == 0


def test_a_robot_whose_lease_is_over_is_shown_as_lost_for_a_while(fleet: ViewedFleet) -> None:
    fleet.robot('r0')
    fleet.robot('r1')
    fleet.pass_ms(3_000)
    assert fleet.of('r0').level is Level.ERROR
    assert fleet.of('r0').text.startswith('stale: silent for 3.0 s')
    fleet.pass_ms(2_500)
    fleet.bench.front_end.forget_silent()
    lost = fleet.of('r0')
    assert (lost.level, lost.registered) == (Level.ERROR, False)
    assert 'silent for 6 s' in lost.text
    assert fleet.view.totals().lost == 2
    fleet.robot('r0', instance=2)
    assert [robot.registered for robot in fleet.status().robots] == [True, False]
    fleet.pass_ms(60_000)
    assert [robot.robot_id for robot in fleet.status().robots] == ['r0']


def test_who_says_goodbye_is_not_lost(fleet: ViewedFleet) -> None:
    fleet.robot('r0').leave()
    fleet.bench.front_end.forget_silent()
    assert fleet.status().robots == ()
    assert fleet.view.totals().lost == 0


def test_memory_is_bounded_however_often_a_robot_asks(fleet: ViewedFleet) -> None:
    robot = fleet.robot()
    for request_id in range(1, 2 * MAX_ENTRIES):
        fleet.serve(robot, request_id, 0.25)
        fleet.bench.engine.sent.clear()
    status = fleet.of()
    assert status.responses == 2 * MAX_ENTRIES - 1
    assert status.responses_hz == pytest.approx(4000, rel=0.01)  # by the time that it covers


def test_pictures_of_observations_are_not_kept(fleet: ViewedFleet) -> None:
    robot = fleet.robot()
    asked = observation(robot, 1)
    fleet.bench.front_end.submit(robot, asked, fleet.now_ns)
    fleet.bench.engine.finish(fleet.bench.engine.submitted()[-1], np.zeros((8, 3), np.float32))
    fleet.bench.answers.clear()
    kept = [type(holder).__module__ for holder in gc.get_referrers(asked)]
    assert not [module for module in kept if module.startswith('xinfer_ros')]


def test_totals_outlast_an_engine(fleet: ViewedFleet) -> None:
    """An engine counts from zero again; the server does not."""
    for epoch, busy_s in ((7, 1), (7, 3), (8, 1), (8, 2)):
        fleet.view.engine_told(epoch, _beat(busy_s), fleet.now_ns)
        fleet.pass_ms(250)
    engines = fleet.view.engines(fleet.now_ns)
    assert engines.sums.busy_ns == (5 * S, 0, 0)
    assert engines.sums.predictions == 50
    assert engines.sums.verdicts[3] == 5


def test_what_an_engine_did_ends_with_it(fleet: ViewedFleet) -> None:
    fleet.bench.engine.tell(_beat(1))
    assert (fleet.status().waiting, fleet.status().protected_requests) == ((1, 2, 3), 4)
    fleet.bench.engine.die(8)
    status = fleet.status()
    assert (status.waiting, status.protected_requests) == ((0, 0, 0), 0)
    assert (status.level, status.num_slots) == (Level.WARN, 0)


def test_an_engine_that_is_soon_replaced_is_told_for_a_window() -> None:
    """Nobody may have looked while there was none: a status comes once a second."""
    fleet = ViewedFleet(status_window_s=5.0)
    assert (fleet.status().level, fleet.view.engines(fleet.now_ns).restarts) == (Level.OK, 0)
    fleet.bench.engine.die(8)
    fleet.bench.engine.become_ready(8)
    fleet.pass_ms(4_900)
    told = fleet.status()
    assert (told.level, told.text[:23]) == (Level.WARN, 'the engine ended 4.9 s ')
    fleet.pass_ms(100)
    assert fleet.status().level is Level.OK
    assert fleet.view.engines(fleet.now_ns).restarts == 1  # though it gave no sign of life


def test_occupancy_is_over_the_window(fleet: ViewedFleet) -> None:
    for quarter in range(120):  # half of each is spent at work
        fleet.view.engine_told(7, _beat(quarter * 0.125), fleet.now_ns)
        fleet.pass_ms(250)
    assert fleet.status().occupancy == pytest.approx((0.5, 0.0, 0.0), abs=0.01)
    assert fleet.status().prediction_error_ms == pytest.approx(2.0, rel=0.02)


def test_refusals_at_registration_are_counted(fleet: ViewedFleet) -> None:
    fleet.robot('r0')
    with pytest.raises(Rejected):
        fleet.robot('r0', instance=2)
    assert fleet.view.totals().not_registered == {Reason.DUPLICATE_ID: 1}
    assert fleet.of().level is Level.WARN
    assert 'DUPLICATE_ID' in fleet.of().text
    fleet.pass_ms(1_900)
    assert 'DUPLICATE_ID' in fleet.of().text


def test_it_may_be_looked_at_from_any_thread(fleet: ViewedFleet) -> None:
    """Nothing raises while robots come and go, and no answer is left out."""
    looked: list[int] = []
    ends = threading.Event()

    def look() -> None:
        while not ends.is_set():
            looked.append(fleet.status().responses)
            fleet.view.totals()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(40):
            robot = fleet.robot(f'r{number}')
            for request_id in range(1, 6):
                fleet.serve(robot, request_id, 1)
            robot.leave()
            fleet.bench.front_end.forget_silent()
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert looked == sorted(looked)
    assert fleet.status().responses == fleet.view.totals().slack.cumulative[-1] == 200


def _beat(busy_s: float) -> Beat:
    return Beat(
        oldest_unit_ns=0,
        slowdown=1.0,
        correction=(1.0, 1.0, 1.0),
        mirror_error=0.0,
        busy_ns=(round(busy_s * S), 0, 0),
        running=(1, 0, 0),
        waiting=(1, 2, 3),
        protected=4,
        verdicts=(0, 0, 0, round(busy_s), 0, 0, 0, 0),
        prediction_error_ns=round(busy_s * 20 * MS),
        predictions=round(busy_s * 10),
    )
