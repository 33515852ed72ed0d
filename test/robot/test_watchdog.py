# SPDX-License-Identifier: Apache-2.0
"""Who notices that chunks, or our own ticks, do not come any more."""

import threading

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.robot.control_loop import ControlLoop
from xinfer_ros.robot.watchdog import ChunkWatchdog, StallGuard, stall_limit_ns

MS = 1_000_000


def test_watchdog_trips_at_its_time_after_the_last_arrival() -> None:
    """CQ-09: only arrivals on the steady clock count; there is nothing to compare them with."""
    watchdog = ChunkWatchdog(300 * MS)
    assert watchdog.trouble(10**18) == ''  # before the first chunk nothing moves
    watchdog.feed(1_000 * MS)
    assert watchdog.trouble(1_299 * MS) == ''
    assert watchdog.trouble(1_300 * MS) == 'chunk timeout: none came for 0.3 s'
    watchdog.feed(1_310 * MS)
    assert watchdog.trouble(1_320 * MS) == ''
    watchdog.rest()
    assert watchdog.trouble(10**18) == ''


def test_watchdog_without_a_timeout_never_trips() -> None:
    watchdog = ChunkWatchdog(0)
    watchdog.feed(0)
    assert watchdog.trouble(10**18) == ''


def test_stall_is_three_ticks_or_a_tenth_of_a_second() -> None:
    assert stall_limit_ns(10 * MS) == 100 * MS
    assert stall_limit_ns(100 * MS) == 300 * MS


def test_each_stall_is_told_once() -> None:
    clock, late_ns, told = SimulatedClock(), 0, []
    guard = StallGuard(clock, lambda now_ns: late_ns, 100 * MS, told.append)
    for late_ms in (0, 100, 101, 250, 3, 120):
        late_ns = late_ms * MS
        guard.look()
    assert told == [101 * MS, 120 * MS]


def test_host_that_halts_the_whole_process_is_no_stall_of_the_control_thread() -> None:
    """It goes on as soon as the guard does; only if it does not, it stalls."""
    clock, late_ns, told = SimulatedClock(), 0, []
    guard = StallGuard(clock, lambda now_ns: late_ns, 100 * MS, told.append)
    guard.look()
    clock.advance(550 * MS)  # 500 more than it wanted
    late_ns = 520 * MS
    guard.look()
    assert told == []
    clock.advance(50 * MS)
    late_ns = 570 * MS
    guard.look()
    assert told == [570 * MS]


def test_thread_that_stalls_is_noticed_by_another() -> None:
    clock, told, end = SimulatedClock(), threading.Event(), threading.Event()

    def stalls(now_ns: int) -> int | None:
        clock.advance(150 * MS)
        end.wait()
        return None

    loop = ControlLoop(clock, [stalls], lambda: None)
    guard = StallGuard(clock, loop.lateness_ns, 100 * MS, lambda late_ns: told.set())
    loop.start()
    guard.start()
    told.wait()
    end.set()
    guard.close()
    assert loop.close()
