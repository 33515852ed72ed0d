# SPDX-License-Identifier: Apache-2.0
"""What an episode holds, frames that are missing above all."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.episodes.summary import summary, timing

from .samples import FRAMES, STEP_NS, camera, sample, shipped


def test_shipped_episode_has_lost_nothing() -> None:
    found = summary(shipped().read(), 'rosbag2', {})
    assert found.duration_s == pytest.approx(8.97)
    assert [one.timing.dropped for one in found.cameras] == [0, 0, 0]
    assert found.states is not None
    assert found.states.rate_hz == pytest.approx(100 / 3)
    assert len(found.switches) == 6
    assert found.contact_share is None


def test_dropped_frames_show_in_the_gaps_between_the_stamps_of_the_camera() -> None:
    """Also seen, rosbag2 1579: the recorder was late and lost frames; its own times hide that."""
    stamps_ns = np.arange(1, FRAMES + 1) * STEP_NS
    stamps_ns[5:] += 3 * STEP_NS  # three frames were lost here
    lossy = replace(camera('top', jpeg=True), stamps_ns=stamps_ns)
    (found,) = summary(sample(cameras=(lossy,)), 'rosbag2', {}).cameras
    assert found.timing.dropped == 3
    assert found.timing.longest_gap_s == pytest.approx(0.2)
    assert found.timing.count == FRAMES


def test_camera_without_stamps_is_judged_by_the_times_of_its_messages() -> None:
    times_ns = np.array([0, 1, 2, 4, 5]) * STEP_NS
    dumb = replace(camera('top', jpeg=True, times_ns=times_ns), stamps_ns=np.zeros(5, np.int64))
    (found,) = summary(sample(cameras=(dumb,)), 'rosbag2', {}).cameras
    assert found.timing.dropped == 1


def test_contact_share_is_told_if_efforts_were_measured() -> None:
    assert summary(sample(), 'hdf5', {}).contact_share == pytest.approx(0.5)
    assert summary(sample(), 'hdf5', {'left_gripper': 9.0}).contact_share == 0.0


def test_jitter_is_no_gap() -> None:
    jitter = np.array([0, 4, -4, 3, -2, 0]) * 1_000_000
    found = timing(np.arange(6) * STEP_NS + jitter)
    assert found.dropped == 0


@pytest.mark.parametrize('times', [[], [0], [5, 5]])
def test_too_few_times_have_no_rate(times: list[int]) -> None:
    assert timing(np.array(times, np.int64)).rate_hz == 0.0
