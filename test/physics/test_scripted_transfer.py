# SPDX-License-Identifier: Apache-2.0
"""The script of the shipped episodes."""

from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.physics.scene_view import JOINT_NAMES


@pytest.fixture
def no_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep dm_control from looking for a display."""
    monkeypatch.setenv('MUJOCO_GL', 'disable')


@pytest.mark.usefixtures('no_renderer')
def test_script_still_gives_the_commands_of_the_shipped_episode() -> None:
    from xinfer_ros.physics import scripted_transfer

    shipped = find_episode('transfer_cube_1', Path(__file__).parents[2] / 'episodes').read()
    ends_s = scripted_transfer.phase_ends(1, 9.0)
    keyframes = list(scripted_transfer.run(scripted_transfer.make_environment(1), ends_s))
    assert shipped.commands is not None
    commands = np.array([keyframe.command for keyframe in keyframes])
    np.testing.assert_allclose(commands, shipped.commands.values, atol=1e-9)
    assert shipped.joints == JOINT_NAMES
    assert keyframes[-1].reward == 4
    grippers = scripted_transfer.gripper_rows(ends_s)
    assert (grippers == commands[:, [6, 13]]).all()
