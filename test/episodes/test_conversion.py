# SPDX-License-Identifier: Apache-2.0
"""From each format to each other: what stays, and that nothing is overwritten."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.episodes.conversion import FORMATS, convert, make_writer
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.pictures import decoded
from xinfer_ros.episodes.reader import Progress, no_progress
from xinfer_ros.episodes.sources import EpisodeReference, find_episodes
from xinfer_ros.errors import ConfigError

from .samples import FRAMES, SHIPPED, sample, series

SUFFIX = {'rosbag2': '', 'lerobot': '', 'hdf5': '.hdf5'}


def _silent(name: str) -> Progress:
    return no_progress


def _written(episodes: list[Episode], path: Path, format: str) -> tuple[EpisodeReference, ...]:
    make_writer(format).write(episodes, path, no_progress)
    return find_episodes(str(path), SHIPPED)


def _compare(found: Episode, given: Episode, *, exact: bool) -> None:
    assert found.joints == given.joints
    assert found.task == given.task
    tolerance = 0.0 if exact else 1e-6
    for name in ('states', 'commands', 'efforts'):
        one, other = getattr(found, name), getattr(given, name)
        assert np.array_equal(one.times_ns, other.times_ns)
        assert np.allclose(one.values, other.values, rtol=0.0, atol=tolerance)
    for other_camera in given.cameras:
        (one_camera,) = [c for c in found.cameras if c.name == other_camera.name]
        frames = list(zip(one_camera.frames(), other_camera.frames(), strict=True))
        assert len(frames) == FRAMES
        for frame, original in frames:
            assert frame.time_ns == original.time_ns
            error = np.abs(decoded(frame).astype(float) - decoded(original)).mean()
            assert error == 0.0 if exact else error < 6.0


@pytest.mark.parametrize('jpeg', [True, False])
@pytest.mark.parametrize('format', ['rosbag2', 'hdf5'])
def test_round_trip_keeps_every_bit(tmp_path: Path, format: str, jpeg: bool) -> None:
    given = sample(jpeg=jpeg)
    (reference,) = _written([given], tmp_path / f'out{SUFFIX[format]}', format)
    _compare(reference.read(), given, exact=True)


def test_round_trip_through_a_data_set_keeps_what_video_keeps(tmp_path: Path) -> None:
    given = sample(jpeg=False)
    (reference,) = _written([given], tmp_path / 'out', 'lerobot')
    _compare(reference.read(), given, exact=False)


@pytest.mark.parametrize('first', FORMATS)
@pytest.mark.parametrize('second', FORMATS)
def test_every_format_becomes_every_other(tmp_path: Path, first: str, second: str) -> None:
    given = sample()
    references = _written([given], tmp_path / f'first{SUFFIX[first]}', first)
    out = tmp_path / f'second{SUFFIX[second]}'
    assert convert(references, out, make_writer(second), _silent) == [out]
    (reference,) = find_episodes(str(out), SHIPPED)
    exact = 'lerobot' not in (first, second)
    _compare(reference.read(), given, exact=exact)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f'first{SUFFIX[first]}', out.name]
    )


def test_several_episodes_become_one_data_set_or_several_files(tmp_path: Path) -> None:
    given = [sample(name='a'), sample(name='b', task='Another.')]
    references = _written(given, tmp_path / 'set', 'lerobot')
    made = convert(references, tmp_path / 'files', make_writer('hdf5'), _silent)
    assert [path.name for path in made] == ['set_0.hdf5', 'set_1.hdf5']
    files = find_episodes(str(tmp_path / 'files'), SHIPPED)
    again = convert(files, tmp_path / 'again', make_writer('lerobot'), _silent)
    assert again == [tmp_path / 'again']
    tasks = [one.read().task for one in find_episodes(str(tmp_path / 'again'), SHIPPED)]
    assert tasks == ['Fold the towel.', 'Another.']


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    references = _written([sample()], tmp_path / 'first.hdf5', 'hdf5')
    (tmp_path / 'there').write_text('mine')
    with pytest.raises(ConfigError, match='nothing is overwritten'):
        convert(references, tmp_path / 'there', make_writer('rosbag2'), _silent)
    assert (tmp_path / 'there').read_text() == 'mine'


def test_nothing_is_left_of_a_conversion_that_fails(tmp_path: Path) -> None:
    other = replace(sample(name='b'), joints=('x', 'y'))
    one = _written([sample(name='a')], tmp_path / 'a.hdf5', 'hdf5')
    two = _written([other], tmp_path / 'b.hdf5', 'hdf5')
    with pytest.raises(ConfigError, match='differ in joints'):
        convert([*one, *two], tmp_path / 'out', make_writer('lerobot'), _silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['a.hdf5', 'b.hdf5']


@pytest.mark.parametrize(
    ('out', 'format', 'part'),
    [
        ('out.txt', 'hdf5', 'ends in .hdf5'),
        ('none/out', 'rosbag2', 'there is no folder'),
    ],
)
def test_impossible_target_is_refused(tmp_path: Path, out: str, format: str, part: str) -> None:
    references = _written([sample()], tmp_path / 'first.hdf5', 'hdf5')
    with pytest.raises(ConfigError, match=part):
        convert(references, tmp_path / out, make_writer(format), _silent)


def test_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigError, match='known: rosbag2, lerobot, hdf5'):
        make_writer('zarr')


def test_slow_joints_are_taken_as_they_were_at_each_frame(tmp_path: Path) -> None:
    """Joints at half the rate of the cameras: the newest row counts, none from the future."""
    whole = series(lambda t: t, lambda t: 0 * t)
    slow = replace(whole, times_ns=whole.times_ns[::2], values=whole.values[::2])
    (reference,) = _written([sample(states=slow)], tmp_path / 'out.hdf5', 'hdf5')
    states = reference.read().states
    assert states is not None
    seconds = np.repeat(whole.values[::2, 0], 2)
    assert states.values[:, 0].tolist() == seconds.tolist()
