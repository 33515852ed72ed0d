# SPDX-License-Identifier: Apache-2.0
"""Where the tools of the simulated arms are."""

from typing import Any

import numpy as np
import pytest

from xinfer_ros.physics.kinematics import (
    ARMS,
    BENT_WRIST,
    ArmKinematics,
    ToolPose,
    rotation,
    turn_between,
)
from xinfer_ros.physics.transfer_scene import load_model

START = np.array([0.0, -0.96, 1.16, 0.0, -0.3, 0.0])
BENT = np.array([0.0, -0.96, 1.16, 0.0, BENT_WRIST, 0.0])


@pytest.fixture(scope='module')
def model() -> Any:
    """Return the compiled scene."""
    return load_model()


@pytest.mark.parametrize('arm', ARMS)
def test_arm_reaches_a_pose_to_a_hundredth_of_a_millimetre(model: Any, arm: str) -> None:
    kinematics = ArmKinematics(model, arm)
    wanted = ToolPose(xyz=(0.03, 0.52, 0.12), pitch=0.9, roll=0.4)
    found = kinematics.pose(kinematics.reach(wanted, BENT))
    assert found.xyz == pytest.approx(wanted.xyz, abs=2e-5)
    assert (found.pitch, found.roll) == pytest.approx((0.9, 0.4), abs=1e-4)


def test_pose_out_of_reach_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match='the left arm does not reach'):
        ArmKinematics(model, 'left').reach(ToolPose(xyz=(1.5, 0.5, 0.2)), START)


def test_arms_start_level_and_face_each_other(model: Any) -> None:
    left, right = (ArmKinematics(model, arm).pose(START) for arm in ARMS)
    assert left.pitch == pytest.approx(right.pitch, abs=1e-4)
    assert left.xyz[0] == pytest.approx(-right.xyz[0], abs=1e-3)
    assert left.xyz[0] < 0.0


@pytest.mark.parametrize('arm', ARMS)
def test_axes_of_a_tool_are_a_rotation(arm: str) -> None:
    axes = rotation(arm, 0.7, -1.1)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    assert axes[2, 0] == pytest.approx(-np.sin(0.7))  # the approach points down by the pitch


def test_turn_between_axes_points_along_their_axis() -> None:
    turn = turn_between(rotation('left', 0.1, 0.0), rotation('left', 0.1, 0.05))
    approach = rotation('left', 0.1, 0.0)[:, 0]
    np.testing.assert_allclose(turn, np.sin(0.05) * approach, atol=1e-12)
