# SPDX-License-Identifier: Apache-2.0
"""Many robots and more than the device can do: the real server in simulated time."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import load_calibration

from .scripted_engine import Bench
from .simulated_fleet import MS, Member, S, SimulatedFleet

PAPER = load_calibration('paper')
SPREAD_MS = 25.0  # between the first requests of two robots


def _join(fleet: SimulatedFleet, count: int, budget_ms: int = 180) -> list[Member]:
    return [fleet.join(budget_ms=budget_ms, after_ms=SPREAD_MS * index) for index in range(count)]


def _served(members: list[Member], from_ns: int = 0) -> list[Member]:
    """Return the robots that were refused nothing."""
    return [m for m in members if all(o.reason is Reason.OK for o in m.since(from_ns))]


def _on_time(members: list[Member], from_ns: int = 0) -> float:
    answered = [o for m in members for o in m.since(from_ns) if o.reason is Reason.OK]
    return sum(o.latency_ns <= o.budget_ns for o in answered) / len(answered)


@pytest.mark.parametrize('policy', ['foresight', 'fifo'])
def test_eight_robots_get_more_than_one_at_a_bearable_latency(policy: str) -> None:
    """SC-01: robots that ask again at once; the stages of different robots overlap."""
    rate, latency_ns = {}, {}
    for robots in (1, 2, 4, 8):
        fleet = SimulatedFleet(PAPER, policy=policy, share=None)
        members = [fleet.join(budget_ms=500, period_ms=10, after_ms=7 * i) for i in range(robots)]
        fleet.time.run(6.0)
        outcomes = [o for m in members for o in m.since(2 * S)]
        rate[robots] = len(outcomes) / 5.0
        latency_ns[robots] = float(np.mean([o.latency_ns for o in outcomes]))
    assert rate[8] >= 2.0 * rate[1]
    assert latency_ns[8] <= 4.0 * latency_ns[1]
    assert rate[1] < rate[2] < rate[4]


def test_beyond_the_capacity_some_are_refused_with_the_figure_and_the_others_are_on_time() -> None:
    """SC-01, second half."""
    fleet = SimulatedFleet(PAPER)
    members = _join(fleet, 20)
    fleet.time.run(30.0)
    served = _served(members)
    assert served == members[: len(served)]
    assert len(served) == int(0.95 * PAPER.saturated_per_ms * 180)
    assert _on_time(served) >= 0.95
    refused = [o for m in members[len(served) :] for o in m.outcomes]
    assert {o.reason for o in refused} == {Reason.REJECTED_CAPACITY}
    assert max(o.latency_ns for o in refused) <= 5 * MS
    figures = [
        re.match(r'the device gives (\S+) responses/s; it serves 13', o.detail) for o in refused
    ]
    capacity = 0.95 * PAPER.saturated_per_ms * 1e3
    assert all(float(found[1]) == pytest.approx(capacity, rel=0.05) for found in figures if found)
    assert all(figures)


def test_an_overload_is_refused_at_the_door_and_passes_without_a_trace() -> None:
    """SC-05: twice the capacity for 60 s; the queue is bounded by the robots admitted."""
    fleet = SimulatedFleet(PAPER)
    first = _join(fleet, 10)
    fleet.time.run(5.0)
    begin_ns = fleet.time.clock.now_ns()
    crowd = _join(fleet, 18)
    fleet.time.run(60.0)
    end_ns = fleet.time.clock.now_ns()
    everybody = first + crowd
    admitted = [m for m in everybody if any(o.reason is Reason.OK for o in m.outcomes)]
    assert _served(first) == first
    assert 10 < len(admitted) < 28
    assert fleet.most_in_server <= len(admitted)  # at most one request a robot
    for member in admitted:
        taken = [o for o in member.since(begin_ns) if o.reason is Reason.OK]
        assert np.quantile([o.latency_ns for o in taken], 0.99) <= taken[0].budget_ns
    for member in everybody:
        times = [o.answered_ns for o in member.since(begin_ns)]
        waits = [after - before for before, after in itertools.pairwise(times)]
        assert max(waits) <= 3 * member.period_ns
    for member in crowd:
        fleet.leave(member)
    fleet.time.run(10.0)
    assert _served(first, end_ns) == first
    assert _on_time(first, end_ns) >= 0.99
    assert len(fleet.in_server) <= len(first)


def test_refused_robots_are_served_soon_after_the_crowd_has_gone() -> None:
    """SC-05: recovery within 2 s of the end of the lease of those that left."""
    fleet = SimulatedFleet(PAPER)
    early = _join(fleet, 12)
    fleet.time.run(1.0)
    late = _join(fleet, 8)
    fleet.time.run(5.0)
    refused = [m for m in late if m.outcomes[-1].reason is not Reason.OK]
    assert len(refused) > 4
    for member in early:
        fleet.leave(member)
    fleet.time.run(5.0 + 1.0 + 2.0)  # the lease, the server's round of checks, and 2 s
    assert all(m.outcomes[-1].reason is Reason.OK for m in late)
    fleet.time.run(5.0)
    assert _on_time(late) >= 0.95


def test_when_the_device_becomes_slower_the_robots_that_stay_are_on_time_again() -> None:
    """SC-05: those admitted last are let go until the rest is well served."""
    fleet = SimulatedFleet(PAPER)
    members = _join(fleet, 12)
    fleet.time.run(5.0)
    assert _served(members) == members
    fleet.engine.device.slowdown = 1.6
    fleet.time.run(30.0)
    from_ns = fleet.time.clock.now_ns()
    fleet.time.run(5.0)
    stay = _served(members, from_ns)
    assert members[: len(stay)] == stay
    assert 5 < len(stay) < 12
    assert _on_time(stay, from_ns) >= 0.95


def test_the_door_is_the_front_end_and_a_place_is_free_when_a_lease_is_over() -> None:
    bench = Bench(max_robots=3, capacity_per_s=12.0)
    bench.engine.become_ready(7)
    first, second, third = (bench.robot(name) for name in ('r0', 'r1', 'r2'))
    for robot in (first, second, third):
        bench.ask(robot, 1)
    assert bench.reasons() == ['REJECTED_CAPACITY']
    assert bench.answers[0][0] is third
    assert 'the device gives 12.0 responses/s' in bench.answers[0][1].detail
    assert len(bench.engine.submitted()) == 2
    bench.clock.advance(4 * S)
    for robot in (second, third):
        bench.ask(robot, 2)
    bench.clock.advance(2 * S)
    assert bench.front_end.forget_silent() == [first]
    bench.ask(third, 3)
    assert bench.engine.submitted()[-1].robot == third.number


def test_the_capacity_is_a_share_of_what_the_calibration_gives() -> None:
    config = ServerConfig(admission_share=0.5)
    settings = FrontEndSettings.from_config(config, 1, PAPER)
    assert settings.capacity_per_s == pytest.approx(500.0 * PAPER.saturated_per_ms)
    config = ServerConfig(admission='none')
    assert FrontEndSettings.from_config(config, 1, PAPER).capacity_per_s is None


def test_a_budget_that_cannot_be_meant_is_refused_before_it_costs_anything() -> None:
    """SC-05: 0, −1 and 1e12 ms; NaN has no place in an integer field of the message."""
    bench = Bench()
    bench.engine.become_ready(7)
    robot = bench.robot('r0')
    for request_id, budget_ns in enumerate((0, -1, 10**18, 60_000 * MS + 1), start=1):
        bench.ask(robot, request_id, budget_ns=budget_ns)
    assert bench.reasons() == ['REJECTED_BUDGET'] * 4
    assert bench.engine.sent == []
    bench.ask(robot, 5, budget_ns=60_000 * MS)
    assert len(bench.engine.submitted()) == 1


@pytest.mark.parametrize('period_ns', [0, -1, MS - 1, 60 * S + 1])
def test_a_minimum_period_that_cannot_be_meant_is_refused(period_ns: int) -> None:
    bench = Bench()
    bench.engine.become_ready(7)
    bench.ask(bench.robot('r0'), 1, minimum_period_ns=period_ns)
    assert bench.reasons() == ['REJECTED_PERIOD']
    assert '1 ms to 60 s' in bench.answers[0][1].detail


@pytest.mark.parametrize(
    ('policy', 'share'), [('foresight', 1.0), ('foresight_shed', 1.0), ('xinfer', 0.0)]
)
def test_capacity_counts_batches_where_the_policy_makes_them(policy: str, share: float) -> None:
    batched = replace(PAPER, batch_work=((1.0, 1.5), (1.0, 1.4), (1.0, 1.1)))
    assert batched.batched_per_ms > 1.2 * batched.saturated_per_ms
    assert PAPER.batched_per_ms == PAPER.saturated_per_ms
    config = ServerConfig(scheduling_policy=policy, admission_share=1.0)
    expected = share * batched.batched_per_ms + (1.0 - share) * batched.saturated_per_ms
    found = FrontEndSettings.from_config(config, 1, batched).capacity_per_s
    assert found == pytest.approx(1e3 * expected)
