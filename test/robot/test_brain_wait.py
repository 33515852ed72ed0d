# SPDX-License-Identifier: Apache-2.0
"""What a robot does while its brain keeps it waiting."""

import pytest

from xinfer_ros.robot.brain_wait import SILENT_NS, BrainWait

S = 1_000_000_000


@pytest.mark.parametrize('holds', [True, False])
def test_a_parked_brain_is_seen_and_the_robot_holds_only_if_it_is_told_to(holds: bool) -> None:
    """BG-03: robots keep the last task, or pause, by configuration."""
    wait = BrainWait(holds=holds)
    assert wait.trouble(0) == wait.word(0) == ''
    wait.heard('PARKED', has_episode=True, now_ns=0)
    assert wait.word(S) == 'PARKED'
    assert wait.trouble(S) == ('the brain waits: PARKED' if holds else '')
    wait.heard('', has_episode=True, now_ns=S)
    assert wait.trouble(S) == wait.word(S) == ''


def test_a_brain_node_that_falls_silent_in_an_episode_is_waited_for() -> None:
    wait = BrainWait(holds=True)
    wait.heard('', has_episode=True, now_ns=0)
    assert wait.trouble(SILENT_NS) == ''
    assert wait.trouble(7 * S) == 'the brain waits: the brain node has been silent for 7 s'


def test_a_robot_without_an_episode_waits_for_nobody() -> None:
    wait = BrainWait(holds=True)
    wait.heard('', has_episode=False, now_ns=0)
    assert wait.trouble(100 * S) == ''
