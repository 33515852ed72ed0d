# SPDX-License-Identifier: Apache-2.0
"""Settings that give joints values by name."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.joint_values import joints_matching, ranges_by_joint, values_by_joint

JOINTS = ('left_elbow', 'left_gripper', 'right_elbow', 'right_gripper')


def test_joints_are_matched_in_their_own_order() -> None:
    assert joints_matching(('*gripper', 'left_*'), JOINTS) == (
        'left_elbow', 'left_gripper', 'right_gripper',
    )  # fmt: skip


@pytest.mark.parametrize('pattern', ['*finger*', 'LEFT_*', 'elbow', ''])
def test_pattern_may_match_no_joint(pattern: str) -> None:
    assert joints_matching((pattern,), JOINTS) == ()


def test_later_entries_win() -> None:
    values = values_by_joint(('*=1', 'left_*=0.5', 'left_elbow=-2e-1'), JOINTS, 'step_limits')
    assert values.tolist() == [-0.2, 0.5, 1.0, 1.0]


def test_joint_without_entry_has_the_default() -> None:
    assert np.isnan(values_by_joint((), JOINTS, 'step_limits')).all()
    assert values_by_joint((), JOINTS, 'step_limits', default=math.inf).tolist() == [math.inf] * 4


def test_ranges_are_lower_and_upper_ends() -> None:
    ranges = ranges_by_joint(('*_gripper=0:1', 'right_*=-1.5:2'), JOINTS, 'position_limits')
    assert np.isnan(ranges[:, 0]).all()
    assert ranges[:, 1:].tolist() == [[0, -1.5, -1.5], [1, 2, 2]]


def test_entry_for_no_joint_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        values_by_joint(('left_elbov=1',), JOINTS, 'velocity_limits')
    assert str(caught.value) == (
        "velocity_limits has 'left_elbov=1', but no joint matches 'left_elbov'; "
        'did you mean left_elbow?'
    )


@pytest.mark.parametrize('entry', ['left_elbow', 'left_elbow=', 'left_elbow=x', '*=nan', '*=inf'])
def test_entry_without_a_finite_number_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r'step_limits has .*allowed: JOINT=VALUE'):
        values_by_joint((entry,), JOINTS, 'step_limits')


@pytest.mark.parametrize('entry', ['*=1', '*=1:', '*=:1', '*=1:2:3', '*=a:b'])
def test_entry_without_a_range_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match='allowed: JOINT=LOWER:UPPER'):
        ranges_by_joint((entry,), JOINTS, 'position_limits')


@pytest.mark.parametrize('entry', ['*=2:1', '*=1:1'])
def test_range_in_which_nothing_moves_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match='LOWER must be less than UPPER'):
        ranges_by_joint((entry,), JOINTS, 'position_limits')


@given(st.lists(st.tuples(st.sampled_from((*JOINTS, '*')), st.floats(-9, 9)), max_size=8))
def test_value_is_that_of_the_last_entry_that_matches(entries: list[tuple[str, float]]) -> None:
    values = values_by_joint([f'{name}={value}' for name, value in entries], JOINTS, 'safe_pose')
    for name, value in zip(JOINTS, values, strict=True):
        given_to_it = [number for pattern, number in entries if pattern in (name, '*')]
        assert value == given_to_it[-1] if given_to_it else math.isnan(value)
