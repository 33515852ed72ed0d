# SPDX-License-Identifier: Apache-2.0
"""Which robots are served when the device cannot serve all of them."""

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.sched.admission import CapacityAdmission, Demand

S = 1_000_000_000
PERIOD_NS = S // 5  # a robot asks for 5 responses/s


class Gate:
    """
    An admission, and robots that ask it again and again.

    :param capacity_per_s: as ``CapacityAdmission`` takes it
    """

    def __init__(self, capacity_per_s: float | None) -> None:
        self.admission = CapacityAdmission(capacity_per_s)
        self.now_ns = 10**15
        self.slowdown = 1.0
        self.reason, self.detail = Reason.OK, ''

    def asks(self, robot: int, period_ns: int = PERIOD_NS, budget_ns: int = 2 * PERIOD_NS) -> bool:
        """Let a robot ask now; return whether it is served."""
        try:
            self.admission.ask(robot, period_ns, budget_ns, self.now_ns, self.slowdown)
        except Rejected as refusal:
            self.reason, self.detail = refusal.reason, refusal.detail
            return False
        return True

    def run(self, seconds: float, intervals_ns: dict[int, int]) -> dict[int, int]:
        """Let robots ask at intervals; return how often each was served."""
        end_ns = self.now_ns + int(seconds * S)
        served = dict.fromkeys(intervals_ns, 0)
        sends = [(self.now_ns + robot, robot) for robot in intervals_ns]
        heapq.heapify(sends)
        while sends[0][0] < end_ns:
            self.now_ns, robot = heapq.heappop(sends)
            served[robot] += self.asks(robot)
            heapq.heappush(sends, (self.now_ns + intervals_ns[robot], robot))
        self.now_ns = end_ns
        return served


def test_robots_are_admitted_in_the_order_in_which_they_ask_while_there_is_room() -> None:
    gate = Gate(16.0)
    assert [gate.asks(robot) for robot in (4, 2, 7, 5)] == [True, True, True, False]
    assert gate.admission.admitted == (4, 2, 7)
    assert all(gate.asks(robot) for robot in (2, 7, 4))


def test_refusal_says_the_capacity_and_the_remedy() -> None:
    """SC-01: the others get the refusal with the capacity figure."""
    gate = Gate(16.0)
    for robot in range(4):
        gate.asks(robot)
    assert gate.reason is Reason.REJECTED_CAPACITY
    assert gate.detail.startswith(
        'the device gives 16.0 responses/s; it serves 3 robots that ask for 15.0, and about 3 '
        'fit that ask every 200 ms. '
    )
    assert 'minimum_period_s' in gate.detail
    assert 'another' in gate.detail


def test_a_refused_robot_enters_when_another_leaves() -> None:
    gate = Gate(11.0)
    assert [gate.asks(robot) for robot in range(3)] == [True, True, False]
    gate.admission.forget(0)
    assert gate.asks(2)
    assert gate.admission.admitted == (1, 2)


def test_room_goes_to_the_robot_that_has_waited_longest_and_still_asks() -> None:
    gate = Gate(11.0)
    assert [gate.asks(robot) for robot in range(4)] == [True, True, False, False]
    gate.admission.forget(0)
    assert [gate.asks(robot) for robot in (3, 2, 3)] == [False, True, False]
    gate.admission.forget(1)
    gate.now_ns += 2 * S
    assert gate.asks(3)


def test_robots_that_have_given_up_do_not_hold_up_the_others() -> None:
    gate = Gate(11.0)
    assert [gate.asks(robot) for robot in range(3)] == [True, True, False]
    gate.now_ns += 60 * S
    gate.admission.forget(0)
    assert gate.asks(3)


def test_a_single_robot_is_always_served() -> None:
    gate = Gate(0.5)
    assert gate.asks(0, S // 100)
    gate.slowdown = 2.0
    assert gate.run(60, {0: S // 100}) == {0: 6000}
    assert not gate.asks(1)
    assert 'about 1 fit' in gate.detail
    gate.admission.forget(0)
    assert gate.asks(1)


def test_without_a_capacity_everybody_is_served() -> None:
    gate = Gate(None)
    assert all(gate.asks(robot, S // 1000) for robot in range(500))


def test_a_newcomer_counts_with_its_period_and_later_with_what_it_really_asks_for() -> None:
    """A robot that the server paces asks for less than once a TE; that makes room, but not yet."""
    demand = Demand(0)
    for half in range(120):
        demand.count(PERIOD_NS, 3 * PERIOD_NS, half * S // 2)
        expected = 5.0 if half < 40 else 2.0
        assert demand.per_s(half * S // 2) == pytest.approx(expected, rel=0.05)
    assert demand.per_s(75 * S) == pytest.approx(1.0, rel=0.1)  # it asks for nothing any more
    assert demand.per_s(1000 * S) == 0.0


def test_a_robot_in_use_counts_with_what_it_needs_to_be_on_time() -> None:
    """Else a device that is too slow would hide its overload: robots that wait ask for less."""
    demand = Demand(0)
    for second in range(60):
        demand.count(PERIOD_NS, 2 * PERIOD_NS, second * S)
    assert demand.per_s(59 * S) == pytest.approx(2.5)


def test_a_robot_that_asks_too_often_takes_no_more_than_its_share() -> None:
    """At most one of its requests is in the server; the others supersede each other."""
    demand = Demand(0)
    for at in range(6000):
        demand.count(PERIOD_NS, PERIOD_NS, at * S // 100)
    assert demand.per_s(60 * S) == pytest.approx(5.0)


def test_pacing_makes_room_for_more_robots() -> None:
    gate = Gate(11.0)
    assert gate.run(19, {0: 2 * PERIOD_NS, 1: 2 * PERIOD_NS, 2: PERIOD_NS})[2] == 0
    served = gate.run(10, {0: 2 * PERIOD_NS, 1: 2 * PERIOD_NS, 2: PERIOD_NS})
    assert served[2] > 40


def test_the_robot_admitted_last_is_let_go_when_the_device_has_become_slower_for_good() -> None:
    gate = Gate(16.0)
    robots = {3: PERIOD_NS, 1: PERIOD_NS, 2: PERIOD_NS}
    for robot in robots:
        assert gate.asks(robot)
    gate.slowdown = 1.3
    assert min(gate.run(4, robots).values()) == 20
    assert gate.run(10, robots)[2] < 25
    assert gate.admission.admitted == (3, 1)
    assert gate.run(60, robots) == {3: 300, 1: 300, 2: 0}
    gate.slowdown = 1.0
    assert gate.run(10, robots) == {3: 50, 1: 50, 2: 50}


def test_a_short_or_a_small_excess_lets_nobody_go() -> None:
    gate = Gate(16.0)
    robots = dict.fromkeys(range(3), PERIOD_NS)
    for slowdown, seconds in ((1.0, 1), (1.3, 4), (1.0, 4), (1.3, 4), (1.08, 60)):
        gate.slowdown = slowdown
        served = gate.run(seconds, robots)
        assert sum(served.values()) == 15 * seconds


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.floats(1.0, 60.0),
    events=st.lists(
        st.tuples(
            st.integers(0, 9), st.integers(10, 400), st.sampled_from(['ask', 'ask', 'ask', 'go'])
        ),
        max_size=300,
    ),
)
def test_admitted_robots_never_exceed_the_capacity_and_stay(
    capacity: float, events: list[tuple[int, int, str]]
) -> None:
    """Within the first 20 s, where each robot counts with what it may ask for at most."""
    gate = Gate(capacity)
    for robot, step_ms, what in events:
        gate.now_ns += step_ms * 10**6 // 6
        before = gate.admission.admitted
        if what == 'go':
            gate.admission.forget(robot)
            assert gate.admission.admitted == tuple(r for r in before if r != robot)
            continue
        is_served = gate.asks(robot, (robot + 1) * 40_000_000)
        after = gate.admission.admitted
        assert after[: len(before)] == before
        assert is_served == (robot in after)
        assert after
        assert len(after) == 1 or gate.admission.demand_per_s(gate.now_ns) <= capacity
