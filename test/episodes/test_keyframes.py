# SPDX-License-Identifier: Apache-2.0
"""Everything at common times."""

import numpy as np
import pytest

from xinfer_ros.episodes.keyframes import keyframes, regular_keyframes
from xinfer_ros.errors import ConfigError

from .samples import FRAMES, STEP_NS, camera, sample, shipped


def test_keyframes_are_those_of_the_fastest_camera() -> None:
    fast = camera('fast', jpeg=True, times_ns=np.arange(2 * FRAMES) * STEP_NS // 2)
    rows = keyframes(sample(cameras=(camera('top', jpeg=True), fast)))
    assert np.array_equal(rows.times_ns, fast.times_ns)
    assert rows.rate_hz == 40.0


def test_episode_without_cameras_has_the_keyframes_of_its_joints() -> None:
    rows = keyframes(sample(cameras=()))
    assert rows.times_ns.tolist() == [row * STEP_NS for row in range(FRAMES)]


def test_uneven_keyframes_become_even() -> None:
    """A frame that came late is repeated, and none is invented."""
    times_ns = np.array([0, 50, 100, 190, 200]) * 1_000_000
    late = camera('top', jpeg=True, times_ns=times_ns)
    rows = regular_keyframes(sample(cameras=(late,)))
    assert rows.times_ns.tolist() == [0, 50_000_000, 100_000_000, 150_000_000, 200_000_000]
    shown = [frame.time_ns // 1_000_000 for frame in rows.frames(late)]
    assert shown == [0, 50, 100, 100, 200]


def test_rate_near_a_whole_number_is_taken_for_it() -> None:
    spacing_ns = 33_333_000
    near = camera('top', jpeg=True, times_ns=np.arange(FRAMES) * spacing_ns)
    assert regular_keyframes(sample(cameras=(near,))).rate_hz == 30.0
    assert regular_keyframes(shipped().read()).rate_hz == pytest.approx(100 / 3)


def test_episode_of_nothing_has_no_keyframes() -> None:
    with pytest.raises(ConfigError, match='no camera, joint state or command'):
        keyframes(sample(cameras=(), states=None, commands=None, efforts=None))
    single = camera('top', jpeg=True, times_ns=np.array([0]))
    with pytest.raises(ConfigError, match='one keyframe has no rate'):
        keyframes(sample(cameras=(single,)))
