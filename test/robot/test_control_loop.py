# SPDX-License-Identifier: Apache-2.0
"""The thread in which robots tick, and the instants at which they do."""

import itertools
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.robot.control_loop import ControlLoop, TickRate

MS = 1_000_000


class Recorder:
    """A task that notes when it was called and lets time pass; ends after a number of calls."""

    def __init__(self, name: str, clock: SimulatedClock, calls: list, num_calls: int) -> None:
        self._name, self._clock, self._calls, self._left = name, clock, calls, num_calls

    def __call__(self, now_ns: int) -> int | None:
        """Note the call; ask for the next in 10 ms, which will have passed by then."""
        self._calls.append((self._name, now_ns))
        self._left -= 1
        due_ns = now_ns + 10 * MS
        self._clock.advance(10 * MS)
        return due_ns if self._left else None


def _run(loop: ControlLoop) -> None:
    """Run a loop whose tasks end by themselves to its end."""
    loop.start()
    for thread in threading.enumerate():
        if thread.name == 'control':
            thread.join()
    loop.close()


def test_tasks_are_called_at_once_and_until_they_want_no_more() -> None:
    clock, calls = SimulatedClock(5 * MS), []
    failures = []
    _run(ControlLoop(clock, [Recorder('a', clock, calls, 3)], lambda: failures.append(1)))
    assert calls == [('a', 5 * MS), ('a', 15 * MS), ('a', 25 * MS)]
    assert not failures


def test_tasks_take_turns_by_the_time_at_which_they_are_due() -> None:
    clock, calls = SimulatedClock(), []
    tasks = [Recorder(name, clock, calls, 3) for name in 'abc']
    _run(ControlLoop(clock, tasks, lambda: None))
    assert [name for name, _ in calls] == list('abcabcabc')


def test_failing_task_ends_the_loop_and_its_owner_learns_of_it() -> None:
    clock, calls, failures = SimulatedClock(), [], []

    def broken(now_ns: int) -> int | None:
        raise RuntimeError('the robot is on fire')

    loop = ControlLoop(clock, [Recorder('a', clock, calls, 9), broken], lambda: failures.append(1))
    _run(loop)
    assert failures == [1]
    assert str(loop.failure) == 'the robot is on fire'
    assert len(calls) == 1


def test_loop_that_waits_ends_when_it_is_closed() -> None:
    called = threading.Event()

    def once_a_day(now_ns: int) -> int:
        called.set()
        return now_ns + 86_400 * 1000 * MS

    loop = ControlLoop(SimulatedClock(), [once_a_day], lambda: None)
    loop.start()
    called.wait()
    loop.close()
    assert loop.failure is None


def test_woken_loop_calls_every_task_before_it_is_due() -> None:
    """As when the simulated time has moved that a task follows."""
    calls: list[int] = []
    called, again = threading.Event(), threading.Event()

    def once_a_day(now_ns: int) -> int:
        calls.append(now_ns)
        (again if called.is_set() else called).set()
        return now_ns + 86_400 * 1000 * MS

    loop = ControlLoop(SimulatedClock(), [once_a_day], lambda: None)
    loop.start()
    called.wait()
    loop.wake()
    again.wait()
    assert loop.close()
    assert len(calls) == 2


def test_loop_says_how_late_it_is_while_a_task_does_not_end() -> None:
    clock, begun, end = SimulatedClock(5 * MS), threading.Event(), threading.Event()

    def stalls(now_ns: int) -> int | None:
        begun.set()
        end.wait()
        return None

    loop = ControlLoop(clock, [stalls], lambda: None)
    assert loop.lateness_ns(clock.now_ns()) == 0
    loop.start()
    begun.wait()
    clock.advance(120 * MS)
    assert loop.lateness_ns(clock.now_ns()) == 120 * MS
    end.set()
    assert loop.close()
    assert loop.lateness_ns(clock.now_ns()) == 0


def test_first_intervals_are_as_long_as_the_others() -> None:
    """Also seen (positronic PR 443): the first row is not due twice."""
    rate, now_ns, instants = TickRate(33_300_000), 7, []
    for _ in range(6):
        assert rate.is_due(now_ns)
        assert rate.begin(now_ns) == 0
        instants.append(now_ns)
        assert not rate.is_due(now_ns)
        now_ns = rate.due_ns
    gaps = [after - before for before, after in itertools.pairwise(instants)]
    assert gaps == [33_300_000] * 5
    assert rate.overruns == 0


@pytest.mark.parametrize(
    ('late_ms', 'due_ms', 'overruns'), [(0, 20, 0), (9, 20, 0), (10, 30, 1), (35, 50, 3)]
)
def test_late_tick_misses_instants_and_does_not_stretch_time(
    late_ms: int, due_ms: int, overruns: int
) -> None:
    """Also seen (lerobot 2531): ticks are missed and counted, the instants stay."""
    rate = TickRate(10 * MS)
    rate.begin(0)
    assert rate.begin(rate.due_ns + late_ms * MS) == overruns
    assert rate.due_ns == due_ms * MS
    assert rate.instant_ns == (due_ms - 10) * MS
    assert rate.overruns == overruns


def test_clock_that_jumps_back_begins_a_new_grid() -> None:
    rate = TickRate(10 * MS)
    rate.begin(5_000 * MS)
    assert not rate.is_due(5_005 * MS)
    assert rate.is_due(3 * MS)
    assert rate.begin(3 * MS) == 0
    assert rate.due_ns == 13 * MS


def test_ticks_that_nobody_wanted_are_not_missed() -> None:
    rate = TickRate(10 * MS)
    rate.begin(0)
    rate.rest()
    assert rate.is_due(5_003 * MS)
    assert rate.begin(5_003 * MS) == 0
    assert rate.due_ns == 5_013 * MS


@settings(deadline=None, derandomize=True)
@given(
    st.integers(1, 10**9), st.integers(0, 10**12), st.lists(st.integers(0, 10**10), max_size=30)
)
def test_every_tick_lies_in_the_future_and_on_the_grid(
    spacing_ns: int, start_ns: int, delays: list[int]
) -> None:
    rate = TickRate(spacing_ns)
    now_ns = start_ns
    for ticks, delay_ns in enumerate(delays, 1):
        rate.begin(now_ns)
        assert rate.instant_ns <= now_ns < rate.due_ns
        assert rate.due_ns == start_ns + (ticks + rate.overruns) * spacing_ns
        now_ns = rate.due_ns + delay_ns
