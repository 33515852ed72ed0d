# SPDX-License-Identifier: Apache-2.0
"""What nobody waits for is not computed: superseded, expired and disconnected requests."""

from collections import Counter

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import load_calibration

from .simulated_fleet import MS, Member, Outcome, S, SimulatedFleet

PAPER = load_calibration('paper')


def _crowd(fleet: SimulatedFleet, robots: int) -> list[Member]:
    """Return robots that ask in turn, at rest for a second."""
    members = [
        fleet.join(budget_ms=400, period_ms=300, after_ms=15.0 * index) for index in range(robots)
    ]
    fleet.time.run(2.0)
    return members


def _sent_between(members: list[Member], from_ns: int, to_ns: int) -> list[Outcome]:
    return [o for m in members for o in m.outcomes if from_ns <= o.sent_ns < to_ns]


def test_robots_that_change_their_minds_in_a_stall_cost_one_request_each() -> None:
    """SC-03: 20 robots, 5 superseding observations each in 500 ms: at most 20 of 100 computed."""
    fleet = SimulatedFleet(PAPER, share=None)
    members = _crowd(fleet, 20)
    for member in members:
        member.pauses = True
    fleet.time.run(1.0)  # everything under way is answered
    fleet.engine.device.stalled = True
    begin_ns = fleet.time.clock.now_ns()
    for turn in range(5):
        for index, member in enumerate(members):
            fleet.time.after(
                turn * 95 * MS + index * MS, lambda member=member: fleet.ask(member)
            )  # fmt: skip
    fleet.time.run(0.5)
    end_ns = fleet.time.clock.now_ns()
    actions_before = fleet.engine.device.started[Stage.ACTION]
    fleet.engine.device.go_on()
    for member in members:
        member.pauses = False
    fleet.time.run(0.6)
    burst = _sent_between(members, begin_ns, end_ns)
    assert len(burst) == 100
    reasons = Counter(outcome.reason for outcome in burst)
    assert reasons[Reason.SUPERSEDED] == 80
    assert reasons[Reason.OK] <= 20
    asked_since = len(_sent_between(members, end_ns, end_ns + S)) + sum(
        len(member.sent) for member in members
    )
    computed = fleet.engine.device.started[Stage.ACTION] - actions_before
    assert computed <= 20 + asked_since
    fleet.time.run(4.0)
    after = _sent_between(members, end_ns + 2 * S, end_ns + 4 * S)
    assert len(after) >= 20 * 4
    on_time = sum(o.reason is Reason.OK and o.latency_ns <= o.budget_ns for o in after)
    assert on_time >= 0.95 * len(after)


def test_robot_that_vanishes_leaves_nothing_in_the_queue() -> None:
    """Its lease ends, what it asked is withdrawn, and its place is free."""
    fleet = SimulatedFleet(PAPER, share=None)
    members = _crowd(fleet, 4)
    fleet.engine.device.stalled = True
    fleet.time.run(0.4)
    for member in members[:2]:
        fleet.leave(member)
    fleet.engine.device.go_on()
    fleet.time.run(8.0)
    assert len(fleet.front_end.robots()) == 2
    assert not fleet.in_server & {(m.robot, key) for m in members[:2] for key in m.sent}


def test_request_that_expires_in_the_queue_is_never_computed() -> None:
    fleet = SimulatedFleet(PAPER, share=None)
    members = _crowd(fleet, 8)
    for member in members:
        member.pauses = True
    fleet.time.run(1.0)
    fleet.engine.device.stalled = True
    begin_ns = fleet.time.clock.now_ns()
    for member in members:
        fleet.ask(member)
    fleet.time.run(1.0)  # every one expires after 0.8 s, but for those that wait on a lane
    expired = [o for o in _sent_between(members, begin_ns, begin_ns + S)]
    assert {o.reason for o in expired} == {Reason.EXPIRED}
    assert len(expired) == 8 - PAPER.bound[Stage.VIT]
    started = fleet.engine.device.started[Stage.VIT]
    fleet.engine.device.go_on()
    fleet.time.run(0.5)
    assert fleet.engine.device.started[Stage.VIT] == started + PAPER.bound[Stage.VIT]
