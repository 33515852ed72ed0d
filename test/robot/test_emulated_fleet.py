# SPDX-License-Identifier: Apache-2.0
"""The emulated robots of one process, driven by a clock of the test."""

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.errors import Reason
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.emulated_robot import EmulatedAnswer
from xinfer_ros.robot.load_plan import LoadPlan

MS = 1_000_000
START, TE, SECONDS = 5_000 * MS, 100 * MS, 2


def plan(robots: int) -> LoadPlan:
    """Return a plan of two seconds."""
    return LoadPlan(
        robots=tuple(range(10, 10 + robots)),
        first_sends_ns=tuple(TE * place // robots for place in range(robots)),
        budgets_ns=((90 * MS,),) * robots,
        period_ns=TE,
        duration_ns=SECONDS * 1_000 * MS,
        keeps_pace=True,
        instance=1,
        episode=1,
        images='jpeg',
        episodes=('any',),
        start_timeout_s=1.0,
        log='log.npz',
    )


def play(fleet: EmulatedFleet, delay_ns: int, lost: frozenset[int] = frozenset()) -> None:
    """Answer every request after a delay, but those with numbers that are lost."""
    clock = SimulatedClock(START)
    answers: list[tuple[int, int, int]] = []
    sent = 0
    while (next_ns := fleet.next_ns) is not None:
        if answers and answers[0][0] <= next_ns:
            at_ns, place, request_id = answers.pop(0)
            clock.advance(max(at_ns - clock.now_ns(), 0))
            answer = EmulatedAnswer(request_id=request_id, is_ours=True, reason=Reason.OK)
            fleet.take(place, clock.now_ns(), answer)
            continue
        clock.advance(max(next_ns - clock.now_ns(), 0))
        fleet.woke(clock.now_ns(), next_ns)
        if (due := fleet.send(clock.now_ns())) is not None:
            if sent not in lost:
                answers.append((clock.now_ns() + delay_ns, due[0], due[1].request_id))
            sent += 1


def test_every_robot_asks_once_a_period() -> None:
    fleet = EmulatedFleet(plan(3), START, 30 * MS)
    play(fleet, 20 * MS)
    log = fleet.log()
    assert fleet.num_sent == fleet.answered == len(log) == 3 * 20
    assert sorted(set(log.robot.tolist())) == [10, 11, 12]
    assert (log.received_ns - log.sent_ns == 20 * MS).all()
    assert (log.sent_ns == log.due_ns).all()
    assert log.wrong.tolist() == [0, 0, 0]


def test_slow_server_slows_robots_down() -> None:
    fleet = EmulatedFleet(plan(2), START, 30 * MS)
    play(fleet, 250 * MS)
    assert len(fleet.log()) == 2 * 8


def test_lost_requests_are_given_up_and_asked_anew() -> None:
    fleet = EmulatedFleet(plan(1), START, 30 * MS)
    play(fleet, 20 * MS, lost=frozenset({2}))
    log = fleet.log()
    assert (log.received_ns == 0).tolist().index(True) == 2
    assert log.sent_ns[3] - log.sent_ns[2] == 500 * MS


def test_lag_is_that_of_the_loop() -> None:
    fleet = EmulatedFleet(plan(1), START, 30 * MS)
    fleet.woke(START + 3 * MS, START)
    fleet.woke(START + 3 * MS, START + 9 * MS)  # an event woke it before its time
    assert fleet.log().lag_ns.tolist() == [3 * MS]


def test_ids_of_a_later_fleet_are_larger() -> None:
    """A session that goes on refuses ids that do not rise."""
    first, second = (EmulatedFleet(plan(1), start, 30 * MS) for start in (START, 2 * START))
    play(first, MS)
    ids = [fleet.send(2 * START) for fleet in (second,)]
    assert ids[0] is not None
    assert ids[0][1].request_id > first.robots[0].plan.first_request_id + len(first.log())
