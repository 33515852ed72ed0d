# SPDX-License-Identifier: Apache-2.0
"""ALOHA-style HDF5 files as ALOHA itself writes them: no names, no rate, padded JPEG."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from xinfer_ros.episodes.pictures import as_jpeg, decoded
from xinfer_ros.episodes.readers.aloha_hdf5 import AlohaHdf5Reader
from xinfer_ros.errors import ConfigError

from ..samples import FRAMES, camera, picture

READER = AlohaHdf5Reader()


def _file(path: Path, images: Any, joints: int = 14) -> Path:
    with h5py.File(path, 'w') as file:
        file.attrs['sim'] = True
        rows = np.arange(FRAMES * joints, dtype=float).reshape(FRAMES, joints)
        file['observations/qpos'] = rows
        file['observations/qvel'] = rows + 1
        file['observations/effort'] = rows + 2
        file['action'] = rows + 3
        file['observations/images/cam_high'] = images
    return path


def _raw() -> np.ndarray:
    return np.stack([picture(index) for index in range(FRAMES)])


def _padded() -> np.ndarray:
    pictures = [as_jpeg(frame) for frame in camera('top', jpeg=True).frames()]
    longest = max(map(len, pictures)) + 7
    rows = [np.frombuffer(data.ljust(longest, b'\0'), np.uint8) for data in pictures]
    return np.stack(rows)


def test_raw_pictures_are_read(tmp_path: Path) -> None:
    path = _file(tmp_path / 'episode_0.hdf5', _raw())
    assert READER.recognises(path)
    episode = READER.read(path, 'episode_0')
    assert episode.joints[0] == 'left_waist'
    assert episode.gripper_joints == ('left_gripper', 'right_gripper')
    series = [episode.states, episode.velocities, episode.efforts, episode.commands]
    assert [one.values[0, 0] for one in series if one is not None] == [0.0, 1.0, 2.0, 3.0]
    assert 'taken for 50 Hz' in episode.warnings[0]
    (high,) = episode.cameras
    assert (high.name, high.encoding, high.height, high.width) == ('cam_high', 'rgb8', 48, 64)
    frames = list(high.frames(100_000_000))
    assert [frame.time_ns for frame in frames] == [20_000_000 * row for row in range(5, FRAMES)]
    assert np.array_equal(decoded(frames[0]), picture(5))


def test_padding_of_jpeg_is_taken_away(tmp_path: Path) -> None:
    episode = READER.read(_file(tmp_path / 'e.hdf5', _padded()), 'e')
    (high,) = episode.cameras
    assert (high.encoding, high.height, high.width) == ('jpeg', 48, 64)
    assert [f.data for f in high.frames()] == [f.data for f in camera('top', jpeg=True).frames()]


def test_single_arm_gets_numbered_joints(tmp_path: Path) -> None:
    episode = READER.read(_file(tmp_path / 'e.hdf5', _raw(), joints=7), 'e')
    assert episode.joints[:2] == ('joint_0', 'joint_1')
    assert episode.gripper_joints == ()


def test_series_of_another_length_is_left_out(tmp_path: Path) -> None:
    path = _file(tmp_path / 'e.hdf5', _raw())
    with h5py.File(path, 'a') as file:
        del file['action']
        file['action'] = np.zeros((FRAMES - 1, 14))
    episode = READER.read(path, 'e')
    assert episode.commands is None
    assert any('action is left out' in warning for warning in episode.warnings)


def test_other_files_are_not_recognised(tmp_path: Path) -> None:
    (tmp_path / 'text.hdf5').write_text('no HDF5')
    with h5py.File(tmp_path / 'other.hdf5', 'w') as file:
        file['numbers'] = [1, 2]
    assert not READER.recognises(tmp_path / 'text.hdf5')
    assert not READER.recognises(tmp_path / 'other.hdf5')
    assert not READER.recognises(tmp_path / 'missing.hdf5')


def test_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path / 'e.hdf5', _raw())
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ConfigError, match=r'e\.hdf5'):
        READER.read(path, 'e')
