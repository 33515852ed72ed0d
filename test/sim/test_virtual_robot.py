# SPDX-License-Identifier: Apache-2.0
"""When a robot of a simulated fleet asks."""

import pytest

from xinfer_ros.sim.virtual_robot import Draw, VirtualRobot

MS = 1_000_000


def _robot(jitter_ms: int = 0, quota: int = 10) -> VirtualRobot:
    draw = Draw.of(400 * MS, [2.0 * MS, 7.0 * MS, 1.0, 1.0, 1.0, 2.0 * MS, float(jitter_ms * MS)])
    return VirtualRobot([draw, draw, draw], quota, 180 * MS)


@pytest.mark.parametrize(
    ('answered_ms', 'ask_after_ms', 'jitter_ms', 'next_ms'),
    [
        (150, 0, 0, 280),  # sent at 100: the period decides
        (300, 0, 0, 300),  # the answer does
        (150, 250, 0, 350),  # the server's pace does
        (150, 120, 0, 280),  # a pace never shortens the period
        (150, 0, 15, 295),
        (150, 0, -15, 265),  # jitter may
        (150, 250, -15, 335),
    ],
)
def test_next_send_is_the_latest_of_period_pace_and_answer(
    answered_ms: int, ask_after_ms: int, jitter_ms: int, next_ms: int
) -> None:
    robot = _robot(jitter_ms)
    robot.send(100 * MS)
    assert robot.sent_ns == 100 * MS
    assert robot.receive(answered_ms * MS, ask_after_ms * MS) == next_ms * MS
    assert robot.index == 1


@pytest.mark.parametrize(('quota', 'sends'), [(1, 1), (2, 2), (10, 3)])
def test_robot_leaves_after_its_quota_or_when_nothing_more_is_drawn(
    quota: int, sends: int
) -> None:
    robot, count, now_ns = _robot(quota=quota), 0, 0
    next_ns: int | None = 0
    while next_ns is not None:
        robot.send(next_ns)
        count, now_ns = count + 1, next_ns + 50 * MS
        next_ns = robot.receive(now_ns, 0)
    assert count == sends
