# SPDX-License-Identifier: Apache-2.0
"""A robot behind a network that loses, doubles, reorders and delays keeps its rules."""

import pytest

from xinfer_ros.robot.execution_mode import ExecutionMode

from .driven_robot import MS
from .rough_life import RoughLife


@pytest.mark.parametrize('mode', list(ExecutionMode))
@pytest.mark.parametrize('adapts', [False, True])
def test_robot_survives_three_rough_minutes_and_its_counters_are_true(
    mode: ExecutionMode, adapts: bool
) -> None:
    """
    CQ-03, CQ-04, CQ-05, CQ-06, CQ-10, RT-01, RT-02, RT-07, SL-02, together.

    No row twice, none left out, none of an old task, episode or session, no step too wide, one
    request in flight, ``d <= s <= H - d``; the robot moves again whenever the network is calm.
    """
    life = RoughLife(seed=7, mode=mode, adapts=adapts)
    life.run(180_000 * MS)
    assert life.reported() == life.books
    assert life.executor.report().misaddressed <= life.network.foreign
    assert min(life.books[name] for name in ('lost', 'late', 'superseded', 'skipped')) > 0
