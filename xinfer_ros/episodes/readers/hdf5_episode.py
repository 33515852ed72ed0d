# SPDX-License-Identifier: Apache-2.0
"""The episode of an ALOHA-style HDF5 file, pictures raw or as padded JPEG."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.episode import JPEG, Camera, Episode, Frame, Series
from xinfer_ros.episodes.pictures import size_of

USUAL_RATE_HZ = 50.0
_ARM = ('waist', 'shoulder', 'elbow', 'forearm_roll', 'wrist_angle', 'wrist_rotate', 'gripper')
_JPEG_END = b'\xff\xd9'


def read_episode(path: Path, name: str, file: h5py.File) -> Episode:
    """
    Return the episode of a file: everything but the pictures.

    :param path: of the file
    :param name: of the episode
    :param file: the file, open
    :raises ValueError: if what it holds does not fit together
    """
    main = file['observations/qpos'] if 'observations/qpos' in file else file['action']
    steps, width = main.shape
    warnings = []
    rate_hz = float(file.attrs.get('fps', 0.0))
    if not rate_hz > 0:
        rate_hz = USUAL_RATE_HZ
        warnings.append(f'no attribute fps; taken for {USUAL_RATE_HZ:g} Hz, as ALOHA records')
    times_ns = np.round(np.arange(steps) * 1e9 / rate_hz).astype(np.int64)
    if 'times_ns' in file:
        times_ns = np.asarray(file['times_ns'][()], np.int64)
    series: dict[str, Series] = {}
    for key in ('observations/qpos', 'observations/qvel', 'observations/effort', 'action'):
        if key not in file:
            continue
        values = np.asarray(file[key][()], np.float64)
        if values.shape == (steps, width):
            series[key] = Series(times_ns=times_ns, values=values)
        else:
            warnings.append(f'{key} is left out: {values.shape}, not {(steps, width)}')
    images = file.get('observations/images', {})
    return Episode(
        name=name,
        joints=_joints(file, width),
        states=series.get('observations/qpos'),
        velocities=series.get('observations/qvel'),
        efforts=series.get('observations/effort'),
        commands=series.get('action'),
        cameras=tuple(_camera(path, camera, images[camera], times_ns) for camera in images),
        task=_task(file),
        warnings=tuple(warnings),
    )


def _joints(file: h5py.File, width: int) -> tuple[str, ...]:
    told = file.attrs.get('joint_names')
    if told is not None and len(told) == width:
        return tuple(map(_text, told))
    if width == 2 * len(_ARM):
        return tuple(f'{side}_{joint}' for side in ('left', 'right') for joint in _ARM)
    return tuple(f'joint_{index}' for index in range(width))


def _task(file: h5py.File) -> str:
    for key in ('task', 'language_instruction'):
        if key in file.attrs:
            return _text(file.attrs[key])
    if 'language_raw' in file:
        found = np.asarray(file['language_raw'][()]).reshape(-1)
        return _text(found[0]) if len(found) else ''
    return ''


def _text(value: Any) -> str:
    return value.decode(errors='replace') if isinstance(value, bytes) else str(value)


def _camera(
    path: Path, name: str, images: h5py.Dataset, times_ns: npt.NDArray[np.int64]
) -> Camera:
    raw = images.ndim == 4
    count = min(len(images), len(times_ns))
    height, width = images.shape[1:3] if raw else size_of(_packed(images[0])) if count else (0, 0)
    return Camera(
        name=name,
        encoding='rgb8' if raw else JPEG,
        height=int(height),
        width=int(width),
        times_ns=times_ns[:count],
        stamps_ns=times_ns[:count],
        read=_FrameReader(path, name, times_ns[:count], (int(height), int(width))),
    )


class _FrameReader:
    """Yields the pictures of a camera, each read when it is asked for."""

    def __init__(
        self, path: Path, name: str, times_ns: npt.NDArray[np.int64], size: tuple[int, int]
    ) -> None:
        self._path, self._name, self._times_ns, self._size = path, name, times_ns, size

    def __call__(self, start_ns: int) -> Iterator[Frame]:
        with h5py.File(self._path, 'r') as file:
            images = file['observations/images'][self._name]
            raw = images.ndim == 4
            for row in range(int(np.searchsorted(self._times_ns, start_ns)), len(self._times_ns)):
                picture = images[row]
                yield Frame(
                    time_ns=int(self._times_ns[row]),
                    encoding='rgb8' if raw else JPEG,
                    height=self._size[0],
                    width=self._size[1],
                    data=np.asarray(picture, np.uint8).tobytes() if raw else _packed(picture),
                )


def _packed(row: Any) -> bytes:
    """Return a JPEG without the zeros behind it, which make all rows equally long."""
    data = bytes(row) if isinstance(row, bytes) else np.asarray(row, np.uint8).tobytes()
    return data[: data.rfind(_JPEG_END) + len(_JPEG_END)]
