# SPDX-License-Identifier: Apache-2.0
"""Episodes as ALOHA-style HDF5 files, one row a keyframe."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np

from xinfer_ros.episodes.episode import JPEG, PNG, Camera, Episode
from xinfer_ros.episodes.keyframes import Keyframes, keyframes
from xinfer_ros.episodes.pictures import as_jpeg, decoded
from xinfer_ros.episodes.reader import Progress
from xinfer_ros.errors import ConfigError


class Hdf5Writer:
    """
    Writes ``observations/qpos``, ``qvel``, ``effort``, ``images`` and ``action``.

    JPEG stays JPEG, padded to one length with ``compress_len``; other pictures become raw RGB. The
    exact times, the rate, the joints and the task are kept too, which ALOHA does not know.
    """

    format = 'hdf5'
    suffix = '.hdf5'
    holds_many = False

    def write(self, episodes: Sequence[Episode], path: Path, progress: Progress) -> None:
        """Write one episode."""
        (episode,) = episodes
        rows = keyframes(episode)
        with h5py.File(path, 'x') as file:
            file.attrs['sim'] = False
            file.attrs['fps'] = rows.rate_hz
            file.attrs['joint_names'] = list(episode.joints)
            file.attrs['task'] = episode.task
            file.attrs['compress'] = any(c.encoding in (JPEG, PNG) for c in episode.cameras)
            file['times_ns'] = rows.times_ns
            for name, series in (
                ('observations/qpos', episode.states),
                ('observations/qvel', episode.velocities),
                ('observations/effort', episode.efforts),
                ('action', episode.commands),
            ):
                if series is not None:
                    file[name] = series.at(rows.times_ns)
            images = file.require_group('observations/images')
            counts = _Counts(progress, len(rows.times_ns) * len(episode.cameras))
            lengths = [
                _write_camera(images, camera, rows, counts)
                for camera in sorted(episode.cameras, key=lambda camera: camera.name)
            ]
            if any(lengths):
                file['compress_len'] = np.array(
                    [row or [0] * len(rows.times_ns) for row in lengths]
                )


class _Counts:
    """Counts keyframes for the progress."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def step(self) -> None:
        self._done += 1
        self._progress(self._done, self._total)


def _write_camera(
    images: h5py.Group, camera: Camera, rows: Keyframes, counts: _Counts
) -> list[int]:
    """Write the pictures of a camera; return the length of each JPEG, nothing if they are raw."""
    if camera.encoding in (JPEG, PNG):
        return list(_write_jpegs(images, camera, rows, counts))
    shape = (camera.height, camera.width, 3)
    data = images.create_dataset(
        camera.name, (len(rows.times_ns), *shape), 'u1', chunks=(1, *shape), compression='lzf'
    )
    for index, frame in enumerate(rows.frames(camera)):
        rgb = decoded(frame)
        if rgb.shape != shape:
            raise ConfigError(f'camera {camera.name}: pictures of {rgb.shape} and of {shape}')
        data[index] = rgb
        counts.step()
    return []


def _write_jpegs(
    images: h5py.Group, camera: Camera, rows: Keyframes, counts: _Counts
) -> Iterator[int]:
    data: h5py.Dataset | None = None
    num_rows = len(rows.times_ns)
    for index, frame in enumerate(rows.frames(camera)):
        packed = np.frombuffer(as_jpeg(frame), np.uint8)
        if data is None:
            data = images.create_dataset(
                camera.name, (num_rows, len(packed)), 'u1', maxshape=(num_rows, None),
                chunks=(1, max(len(packed), 1024)), compression='lzf',
            )  # fmt: skip
        if len(packed) > data.shape[1]:
            data.resize(len(packed), axis=1)
        data[index, : len(packed)] = packed
        counts.step()
        yield len(packed)
