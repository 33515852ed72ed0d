# SPDX-License-Identifier: Apache-2.0
"""Rows of joints in robot units and in model space."""

import numpy as np
import pytest

from xinfer_ros.models.actions import ActionSpace, relative_joints
from xinfer_ros.models.normalise import MeanStdStatistics, QuantileStatistics

_NAMES = ('shoulder.pos', 'elbow.pos', 'Gripper.pos')
_SPAN = QuantileStatistics(
    q01=np.array([-0.4, -0.2, 0.0], np.float32), q99=np.array([0.4, 0.3, 1.0], np.float32)
)


def test_leftover_is_normalised_and_comes_back() -> None:
    """Mean 0.3, std 0.5, prefix 1.2 rad: 1.8 in model space, and back within 1e-4 (RT-06)."""
    statistics = MeanStdStatistics(mean=np.array([0.3]), std=np.array([0.5]))
    space = ActionSpace(statistics=statistics)
    prefix, state = np.full((5, 1), 1.2, np.float32), np.array([0.9], np.float32)
    seen = space.to_model(prefix, state)
    np.testing.assert_allclose(seen, 1.8, atol=1e-6)
    np.testing.assert_allclose(space.to_robot(seen, state), prefix, atol=1e-4)


def test_same_path_is_the_same_after_it_is_anchored_at_another_state() -> None:
    """A chunk relative to one state, its leftover to the next: the path stays (case RT-06)."""
    space = ActionSpace(statistics=_SPAN, relative=np.array([True, True, False]))
    generator = np.random.default_rng(0)
    first, second = generator.uniform(-3, 3, (2, 3)).astype(np.float32)
    path = space.to_robot(generator.uniform(-1, 1, (16, 3)).astype(np.float32), first)
    anchored = space.to_model(path, second)
    assert np.abs(anchored - space.to_model(path, first)).max() > 0.1  # another point of view
    assert np.abs(space.to_robot(anchored, second) - path).max() <= 1e-6


def test_relative_joints_are_steps_from_the_state_and_others_are_not() -> None:
    space = ActionSpace(statistics=_SPAN, relative=np.array([True, True, False]))
    state = np.array([1.0, 2.0, 0.5], np.float32)
    still = np.tile(state, (4, 1))
    at_rest = _SPAN.normalise(np.array([0.0, 0.0, 0.5], np.float32))
    np.testing.assert_allclose(space.to_model(still, state), np.tile(at_rest, (4, 1)), atol=1e-6)


def test_absolute_space_does_not_look_at_the_state() -> None:
    space = ActionSpace(statistics=_SPAN)
    rows = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(
        space.to_model(rows, np.zeros(3, np.float32)), space.to_model(rows, np.ones(3, np.float32))
    )


def test_limits_clip_answers_only() -> None:
    space = ActionSpace(statistics=_SPAN, limits=(_SPAN.q01, _SPAN.q99))
    far, state = np.full((1, 3), 9.0, np.float32), np.zeros(3, np.float32)
    np.testing.assert_array_equal(space.to_robot(far, state)[0], _SPAN.q99)
    assert (space.to_model(far, state) > 1.0).all()


@pytest.mark.parametrize(
    ('absolute', 'expected'),
    [
        (('gripper',), [True, True, False]),
        (('ELBOW.pos', 'grip'), [True, False, False]),
        ((), [True, True, True]),
        (('',), [True, True, True]),
    ],
)
def test_joints_stay_absolute_by_parts_of_their_names(
    absolute: tuple[str, ...], expected: list[bool]
) -> None:
    assert relative_joints(_NAMES, absolute, 3).tolist() == expected


def test_joints_without_names_are_all_relative() -> None:
    """As in training: without names nothing can be excluded."""
    assert relative_joints(None, ('gripper',), 2).tolist() == [True, True]
    assert relative_joints(('gripper',), ('gripper',), 2).tolist() == [False, True]
