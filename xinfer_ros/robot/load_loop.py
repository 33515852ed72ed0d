# SPDX-License-Identifier: Apache-2.0
"""The loop of a process of emulated robots: sends what is due, and waits for what comes."""

from collections.abc import Callable

from xinfer_ros.core.clock import Clock
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.emulated_robot import EmulatedDraft

PROGRESS_NS = 500_000_000


def play(
    fleet: EmulatedFleet,
    send: Callable[[int, EmulatedDraft], None],
    spin: Callable[[float], None],
    tell: Callable[[], None],
    clock: Clock,
) -> None:
    """
    Let robots ask until every one is done.

    :param send: sends the request of a robot, by its place in the fleet
    :param spin: lets answers come in, until one has or for so long at most [s]
    :param tell: called about twice a second
    """
    told_ns = clock.now_ns()
    while (next_ns := fleet.next_ns) is not None:
        now_ns = clock.now_ns()
        if (due := fleet.send(now_ns)) is not None:
            send(*due)
            continue
        spin(max(next_ns - now_ns, 0) / 1e9)
        fleet.woke(clock.now_ns(), next_ns)
        if now_ns - told_ns > PROGRESS_NS:
            told_ns = now_ns
            tell()
