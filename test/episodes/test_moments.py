# SPDX-License-Identifier: Apache-2.0
"""Moments of an episode as a robot would send them."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.episodes.moments import moments
from xinfer_ros.episodes.pictures import size_of
from xinfer_ros.errors import ConfigError

from .samples import sample

CAMERAS = {'top': 'top'}


@pytest.mark.parametrize('recorded_as_jpeg', [True, False])
@pytest.mark.parametrize('raw', [True, False])
def test_pictures_are_sent_as_asked_in_their_recorded_size(
    recorded_as_jpeg: bool, raw: bool
) -> None:
    episode = sample(jpeg=recorded_as_jpeg)
    camera = episode.cameras[0]
    found = moments(episode, {'eye': camera.name}, raw=raw, count=3)
    assert len(found) == 3
    for moment in found:
        (frame,) = moment.frames
        assert (frame.name, frame.compressed) == ('eye', not raw)
        assert moment.state.dtype == np.float32
        if raw:
            assert len(frame.data) == frame.step * frame.height == 3 * camera.width * camera.height
        else:
            assert size_of(frame.data) == (camera.height, camera.width)


def test_moments_lie_evenly_over_the_episode() -> None:
    episode = sample()
    name = episode.cameras[0].name
    found = moments(episode, {name: name}, raw=False, count=4)
    assert episode.states is not None
    times_ns = np.arange(4) * (episode.duration_ns // 4)
    expected = episode.states.at(times_ns).astype(np.float32)
    assert np.allclose([moment.state for moment in found], expected, atol=1e-3)


def test_missing_camera_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match='no camera nose; it has'):
        moments(sample(), {'nose': 'nose'}, raw=False)


def test_episode_without_joint_states_is_refused() -> None:
    with pytest.raises(ConfigError, match='no joint states'):
        moments(replace(sample(), states=None), {}, raw=False)
