# SPDX-License-Identifier: Apache-2.0
"""An episode of a LeRobot data set."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet

from xinfer_ros.episodes.episode import JPEG, PNG, Camera, Episode, Frame, Series
from xinfer_ros.episodes.pictures import size_of
from xinfer_ros.episodes.readers.lerobot_layout import EpisodeFiles, Feature, Layout
from xinfer_ros.episodes.video import video_codec, video_frames
from xinfer_ros.errors import ConfigError

STATE, ACTION = 'observation.state', 'action'
VELOCITY, EFFORT = 'observation.velocity', 'observation.effort'
_PREFIXES = ('observation.images.', 'observation.')
_FRAMES_AT_ONCE = 16


def read_episode(layout: Layout, files: EpisodeFiles) -> Episode:
    """
    Return an episode: everything but the pictures.

    :param layout: of its data set
    :param files: where it lies
    :raises ValueError: if there is no row of it, or what there is does not fit together
    """
    wanted = [name for name in (STATE, ACTION, VELOCITY, EFFORT) if name in layout.features]
    table = pyarrow.parquet.read_table(
        files.data, columns=['timestamp', *wanted], filters=[('episode_index', '=', files.index)]
    )
    if not table.num_rows:
        raise ValueError(f'{files.data} has no row of it')
    # stored as float32 seconds: good to a microsecond in an episode of ten seconds
    seconds = np.asarray(table['timestamp'].to_pylist(), np.float64)
    times_ns = np.round((seconds - seconds[0]) * 1e6).astype(np.int64) * 1000
    series = {
        name: Series(times_ns=times_ns, values=_columns(table[name].to_pylist()))
        for name in wanted
    }
    first = next((name for name in (STATE, ACTION) if name in series), None)
    joints = layout.features[first].joints if first else ()
    warnings = []
    if files.length not in (None, len(times_ns)):
        warnings.append(f'{files.length} rows are announced, {len(times_ns)} are there')
    fitting = {name: one for name, one in series.items() if one.values.shape[1] == len(joints)}
    for name in series.keys() - fitting.keys():
        width = series[name].values.shape[1]
        warnings.append(f'{name} is left out: {width} columns for {len(joints)} joints')
    cameras = [
        _camera(feature, files, times_ns) for feature in layout.features.values() if feature.video
    ]
    cameras += [
        _stored_camera(feature, files, times_ns)
        for feature in layout.features.values()
        if feature.image
    ]
    return Episode(
        name=f'{layout.path.name}_{files.index}',
        joints=joints,
        states=fitting.get(STATE),
        commands=fitting.get(ACTION),
        velocities=fitting.get(VELOCITY),
        efforts=fitting.get(EFFORT),
        cameras=tuple(cameras),
        task=files.task,
        warnings=tuple(warnings),
    )


def _columns(rows: list[object]) -> npt.NDArray[np.float64]:
    values = np.asarray(rows, np.float64)
    return values.reshape(len(rows), -1)


def _camera(feature: Feature, files: EpisodeFiles, times_ns: npt.NDArray[np.int64]) -> Camera:
    path, from_s = files.videos[feature.name]
    return Camera(
        name=_camera_name(feature),
        encoding='rgb8',
        height=feature.height,
        width=feature.width,
        times_ns=times_ns,
        stamps_ns=times_ns,
        read=_VideoReader(path, from_s, times_ns),
        stored=video_codec(path),
    )


class _VideoReader:
    """Yields the frames of one episode in a video that may hold several."""

    def __init__(self, path: Path, from_s: float, times_ns: npt.NDArray[np.int64]) -> None:
        self._path, self._from_s, self._times_ns = path, from_s, times_ns

    def __call__(self, start_ns: int) -> Iterator[Frame]:
        times_ns = self._times_ns
        row = int(np.searchsorted(times_ns, start_ns))
        if row == len(times_ns):
            return
        start_s = self._from_s + int(times_ns[row]) / 1e9
        step_ns = int(np.median(np.diff(times_ns))) if len(times_ns) > 1 else 10**7
        end_s = self._from_s + (int(times_ns[-1]) + step_ns) / 1e9
        frames = video_frames(self._path, start_s, end_s)
        for time_ns, frame in zip(times_ns[row:], frames, strict=False):
            height, width = frame.rgb.shape[:2]
            yield Frame(
                time_ns=int(time_ns),
                encoding='rgb8',
                height=height,
                width=width,
                data=frame.rgb.tobytes(),
            )


def _stored_camera(
    feature: Feature, files: EpisodeFiles, times_ns: npt.NDArray[np.int64]
) -> Camera:
    reader = _StoredReader(files, feature.name, times_ns)
    first = next(reader(0))
    return Camera(
        name=_camera_name(feature),
        encoding=first.encoding,
        height=first.height,
        width=first.width,
        times_ns=times_ns,
        stamps_ns=times_ns,
        read=reader,
    )


class _StoredReader:
    """Yields the pictures that stand in the rows themselves."""

    def __init__(self, files: EpisodeFiles, column: str, times_ns: npt.NDArray[np.int64]) -> None:
        self._files, self._column, self._times_ns = files, column, times_ns

    def __call__(self, start_ns: int) -> Iterator[Frame]:
        for time_ns, data in zip(self._times_ns, self._pictures(), strict=False):
            if time_ns >= start_ns:
                height, width = size_of(data)
                encoding = JPEG if data[:2] == b'\xff\xd8' else PNG
                yield Frame(
                    time_ns=int(time_ns),
                    encoding=encoding,
                    height=height,
                    width=width,
                    data=data,
                )

    def _pictures(self) -> Iterator[bytes]:
        columns = ['episode_index', self._column]
        with pyarrow.parquet.ParquetFile(self._files.data) as file:
            for batch in file.iter_batches(batch_size=_FRAMES_AT_ONCE, columns=columns):
                for row in batch.to_pylist():
                    if row['episode_index'] == self._files.index:
                        yield self._bytes(row[self._column])

    def _bytes(self, picture: dict[str, bytes | None]) -> bytes:
        data = picture['bytes']
        if data is None:
            raise ConfigError(
                f'{self._files.data}: the pictures of {self._column} lie in files of their own, '
                'which is not read; pictures as video or within the rows are'
            )
        return data


def _camera_name(feature: Feature) -> str:
    for prefix in _PREFIXES:
        if feature.name.startswith(prefix):
            return feature.name.removeprefix(prefix)
    return feature.name
