# SPDX-License-Identifier: Apache-2.0
"""What a robot is commanded while there is no row, and what is said last."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.hold import Hold, HoldMode
from xinfer_ros.robot.limits import RowLimits

SPACING_NS = 30_000_000
LAST = np.array([0.5, -0.5], np.float32)


def _pose(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize('mode', list(HoldMode))
def test_nothing_is_commanded_before_the_first_row(mode: HoldMode) -> None:
    hold = Hold(mode, SPACING_NS, _pose(0, 0) if mode is HoldMode.SAFE_POSE else None)
    assert hold.step() is None
    assert hold.safe_output() is None


def test_last_position_is_repeated_until_an_episode_is_over() -> None:
    hold = Hold(HoldMode.LAST_POSITION, SPACING_NS)
    hold.executed(LAST)
    assert [list(hold.step()) for _ in range(2)] == [list(LAST)] * 2
    output = hold.safe_output()
    assert (list(output.values), list(output.goal)) == (list(LAST), list(LAST))
    assert output.duration_ns == SPACING_NS
    hold.forget()
    assert hold.step() is None
    assert hold.safe_output() is None


def test_velocity_becomes_zero_and_stays_so_when_an_episode_is_over() -> None:
    """A joint that was told a velocity moves until it is told another one."""
    hold = Hold(HoldMode.ZERO_VELOCITY, SPACING_NS)
    hold.executed(LAST)
    assert not hold.safe_output().goal.any()
    hold.forget()
    assert not hold.step().any()
    assert not hold.safe_output().values.any()


def test_way_to_the_safe_pose_takes_distance_over_speed() -> None:
    hold = Hold(HoldMode.SAFE_POSE, SPACING_NS, _pose(1.5, -0.5), speed=0.5)
    hold.executed(LAST)
    output = hold.safe_output()
    assert output.duration_ns == 2_000_000_000
    assert list(output.values) == list(LAST)  # a controller without a sense of time stays
    assert list(output.goal) == [1.5, -0.5]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-3, 3, width=32), min_size=4, max_size=4), st.floats(0.01, 10.0))
def test_way_to_the_safe_pose_never_lunges_and_arrives(values: list[float], speed: float) -> None:
    last, pose = np.array(values[:2], np.float32), np.array(values[2:], np.float32)
    hold = Hold(HoldMode.SAFE_POSE, SPACING_NS, pose, speed=speed)
    hold.executed(last)
    reach = speed * SPACING_NS / 1e9
    needed = int(np.abs(pose - last).max() / reach) + 2
    for _ in range(needed):
        step = hold.step()
        assert np.abs(step - last).max() <= reach + 1e-5
        last = step
    np.testing.assert_allclose(last, pose, atol=1e-4)


def test_safe_pose_needs_a_value_for_every_joint_but_discrete_ones() -> None:
    config = ExecutorConfig(hold='safe_pose', safe_pose=('left_*=0.0',))
    with pytest.raises(ConfigError, match='no value for right_waist'):
        Hold.from_config(config, ('left_waist', 'right_waist'), None)
    hold = Hold.from_config(config, ('left_waist', 'right_gripper'), None)
    hold.executed(np.array([9.0, 0.7], np.float32))
    assert hold.moves
    assert hold.step()[1] == np.float32(0.7)  # a gripper keeps what it holds
    assert list(hold.safe_output().goal) == [0.0, np.float32(0.7)]


@pytest.mark.parametrize(
    ('limits', 'text'),
    [
        ({'position_limits': ('a=-1:1',)}, '2 for a; -1 to 1 is allowed, by position_limits'),
        ({'velocity_limits': ('b=0.2',)}, '0.5; b may move at 0.2 per second, by velocity_limits'),
        ({'step_limits': ('a=0.003',)}, '0.5; a may move at 0.1 per second, by step_limits'),
    ],
)
def test_safe_pose_that_breaks_a_limit_is_refused_at_the_start(limits: dict, text: str) -> None:
    config = ExecutorConfig(
        hold='safe_pose', safe_pose=('a=2.0', 'b=0.0'), safe_pose_speed=0.5, **limits
    )
    names = ('a', 'b', 'gripper')
    with pytest.raises(ConfigError, match=text):
        Hold.from_config(config, names, RowLimits.from_config(config, names, None))


def test_joint_that_stays_has_no_part_in_the_limits_of_the_safe_pose() -> None:
    config = ExecutorConfig(
        hold='safe_pose',
        safe_pose=('a=1.0',),
        safe_pose_speed=0.5,
        position_limits=('*=-1:1',),
        step_limits=('gripper=0.001', 'a=0.015'),
    )
    names = ('a', 'gripper')
    assert Hold.from_config(config, names, RowLimits.from_config(config, names, None)).moves


@pytest.mark.parametrize(
    ('interface', 'after'), [('position', [0.5, -0.5]), ('velocity', [0.0, 0.0])]
)
def test_what_holds_by_itself_fits_the_interface(interface: str, after: list[float]) -> None:
    hold = Hold.from_config(ExecutorConfig(command_interface=interface), ('a', 'b'), None)
    hold.executed(LAST)
    assert list(hold.step()) == after
