# SPDX-License-Identifier: Apache-2.0
"""Gripper switches and contact of episodes."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.episodes.episode import Episode, Series
from xinfer_ros.episodes.grippers import contact_share, gripper_switches
from xinfer_ros.errors import ConfigError

from .samples import NAMES, sample, shipped

# what the scripted expert told the grippers, episodes/README.md
TOLD_S = {
    'transfer_cube_0': [0.57, 2.37, 3.93, 5.88, 6.42, 8.10],
    'transfer_cube_1': [0.48, 2.04, 3.60, 5.58, 6.09, 7.92],
    'transfer_cube_2': [0.51, 2.07, 3.54, 5.64, 6.33, 8.10],
}


def _episode(values: list[float], joint: str = 'gripper') -> Episode:
    times_ns = np.arange(len(values)) * 10**8
    series = Series(times_ns=times_ns, values=np.array(values, float).reshape(-1, 1))
    return Episode(name='it', joints=(joint,), states=series)


@pytest.mark.parametrize('name', NAMES)
def test_switches_of_the_shipped_episodes_are_those_that_were_told(name: str) -> None:
    switches = gripper_switches(shipped(name).read())
    assert [switch.time_ns / 1e9 for switch in switches] == pytest.approx(TOLD_S[name])
    assert [switch.opens for switch in switches] == [True, False, True, False, True, False]


@pytest.mark.parametrize('name', NAMES)
def test_states_tell_the_same_switches_a_little_later(name: str) -> None:
    episode = shipped(name).read()
    told = gripper_switches(episode)
    seen = gripper_switches(replace(episode, commands=None))
    assert [(s.joint, s.opens) for s in seen] == [(s.joint, s.opens) for s in told]
    delays = [(s.time_ns - t.time_ns) / 1e9 for s, t in zip(seen, told, strict=True)]
    assert all(0.0 < delay < 0.25 for delay in delays)


def test_states_count_where_a_gripper_was_told_nothing() -> None:
    """A command topic for the arm alone."""
    episode = sample()
    assert episode.commands is not None
    commands = episode.commands.values.copy()
    commands[:, 1] = np.nan
    given = replace(episode, commands=replace(episode.commands, values=commands))
    assert [switch.time_ns for switch in gripper_switches(given)] == [350_000_000]


def test_gripper_that_trembles_does_not_switch() -> None:
    assert gripper_switches(_episode([0.5, 0.503, 0.498, 0.502, 0.499, 0.5])) == ()


def test_joint_without_a_gripper_in_its_name_does_not_count_unless_named() -> None:
    episode = _episode([0, 0, 1, 1], joint='joint_6')
    assert gripper_switches(episode) == ()
    named = replace(episode, grippers=('joint_6',))
    assert [switch.time_ns for switch in gripper_switches(named)] == [200_000_000]


def test_contact_lasts_until_the_effort_is_well_below_its_threshold() -> None:
    efforts = [0.0, 4.0, 3.6, 3.0, 2.7, 0.0, 0.0, -5.0, 0.0, 0.0]
    episode = _episode([0.0] * 10)
    assert episode.states is not None
    pushed = replace(episode.states, values=np.array(efforts).reshape(-1, 1))
    touching = contact_share(replace(episode, efforts=pushed), {'gripper': 4.0})
    assert touching == pytest.approx(0.4)  # 4.0, 3.6, 3.0 and -5.0


def test_contact_is_unknown_without_efforts() -> None:
    assert contact_share(_episode([0.0, 1.0]), {}) is None


def test_threshold_of_an_unknown_joint_is_refused() -> None:
    with pytest.raises(ConfigError, match='no joint elbw'):
        contact_share(sample(), {'elbw': 1.0})
