# SPDX-License-Identifier: Apache-2.0
"""Episodes as a LeRobot data set, version 3.0: parquet for joints, one MP4 a camera."""

import contextlib
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from xinfer_ros.episodes.episode import Camera, Episode
from xinfer_ros.episodes.keyframes import Keyframes, regular_keyframes
from xinfer_ros.episodes.pictures import decoded
from xinfer_ros.episodes.reader import Progress
from xinfer_ros.episodes.video import CODEC, PIXELS, VideoWriter
from xinfer_ros.episodes.writers.lerobot_stats import PictureStats, vector_stats
from xinfer_ros.errors import ConfigError

VERSION = 'v3.0'
_CHUNK = 'chunk-{chunk_index:03d}/file-{file_index:03d}'
_FIRST = _CHUNK.format(chunk_index=0, file_index=0)
_COUNTERS = ('timestamp', 'frame_index', 'episode_index', 'index', 'task_index')


class LerobotWriter:
    """Writes a data set with evenly spaced rows; pictures become H.264, so they lose a little."""

    format = 'lerobot'
    suffix = ''
    holds_many = True

    def write(self, episodes: Sequence[Episode], path: Path, progress: Progress) -> None:
        """
        Write a data set.

        :raises ConfigError: if the episodes differ in joints, cameras or rate, or a size is odd
        """
        rows = [regular_keyframes(episode) for episode in episodes]
        _check_alike(episodes, rows)
        _DataSet(episodes, rows, path, progress).write()


class _DataSet:
    """One data set that is being written."""

    def __init__(
        self,
        episodes: Sequence[Episode],
        rows: Sequence[Keyframes],
        path: Path,
        progress: Progress,
    ) -> None:
        self._episodes, self._rows, self._path, self._progress = episodes, rows, path, progress
        self._rate_hz = rows[0].rate_hz
        self._tasks = list(dict.fromkeys(episode.task for episode in episodes))
        self._lengths = [len(one.times_ns) for one in rows]
        self._stats: dict[str, dict[str, Any]] = {}

    def write(self) -> None:
        for folder in ('data', 'meta/episodes'):
            (self._path / folder / Path(_FIRST).parent).mkdir(parents=True)
        self._write_rows()
        total, done = sum(self._lengths) * len(self._episodes[0].cameras), 0
        for index, camera in enumerate(self._episodes[0].cameras):
            done = self._write_video(index, camera, done, total)
        self._write_episodes()
        self._write_tasks()
        meta = self._path / 'meta'
        (meta / 'stats.json').write_text(json.dumps(self._stats, indent=1))
        (meta / 'info.json').write_text(json.dumps(self._info(), indent=1))

    def _write_rows(self) -> None:
        columns = _vectors(self._episodes[0])
        schema = pyarrow.schema(
            [(name, pyarrow.list_(pyarrow.float32())) for name in columns]
            + [('timestamp', pyarrow.float32())]
            + [(name, pyarrow.int64()) for name in _COUNTERS[1:]]
        )
        place = self._path / 'data' / f'{_FIRST}.parquet'
        done = 0
        values: dict[str, list[Any]] = {name: [] for name in columns}
        with pyarrow.parquet.ParquetWriter(place, schema) as writer:
            for number, (episode, rows) in enumerate(zip(self._episodes, self._rows, strict=True)):
                count = len(rows.times_ns)
                frame = np.arange(count)
                task = self._tasks.index(episode.task)
                table: dict[str, Any] = {}
                for name, series in _vectors(episode).items():
                    found = series.at(rows.times_ns).astype(np.float32)
                    values[name].append(found)
                    table[name] = list(found)
                counters = (
                    (frame / self._rate_hz).astype(np.float32), frame, np.full(count, number),
                    frame + done, np.full(count, task),
                )  # fmt: skip
                table |= dict(zip(_COUNTERS, counters, strict=True))
                writer.write_table(pyarrow.table(table, schema=schema))
                done += count
        for name, parts in values.items():
            self._stats[name] = vector_stats(np.concatenate(parts))

    def _write_video(self, index: int, camera: Camera, done: int, total: int) -> int:
        key = _picture_key(camera)
        rate = Fraction(self._rate_hz).limit_denominator(1001)
        place = self._path / 'videos' / key / f'{_FIRST}.mp4'
        stats = PictureStats()
        with contextlib.ExitStack() as stack:
            video = stack.enter_context(VideoWriter(place, rate, camera.height, camera.width))
            for episode, rows in zip(self._episodes, self._rows, strict=True):
                for frame in rows.frames(episode.cameras[index]):
                    rgb = decoded(frame)
                    video.write(rgb)
                    stats.take(rgb)
                    done += 1
                    self._progress(done, total)
        self._stats[key] = stats.values()
        return done

    def _write_episodes(self) -> None:
        ends = np.cumsum(self._lengths)
        records = []
        for number, (episode, end) in enumerate(zip(self._episodes, ends.tolist(), strict=True)):
            first = end - self._lengths[number]
            record: dict[str, Any] = {
                'episode_index': number,
                'tasks': [episode.task],
                'length': self._lengths[number],
                'dataset_from_index': first,
                'dataset_to_index': end,
                'data/chunk_index': 0,
                'data/file_index': 0,
                'meta/episodes/chunk_index': 0,
                'meta/episodes/file_index': 0,
            }
            for camera in episode.cameras:
                prefix = f'videos/{_picture_key(camera)}'
                record |= {
                    f'{prefix}/chunk_index': 0,
                    f'{prefix}/file_index': 0,
                    f'{prefix}/from_timestamp': first / self._rate_hz,
                    f'{prefix}/to_timestamp': end / self._rate_hz,
                }
            records.append(record)
        place = self._path / 'meta/episodes' / f'{_FIRST}.parquet'
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), place)

    def _write_tasks(self) -> None:
        table = pyarrow.table({'task_index': np.arange(len(self._tasks)), 'task': self._tasks})
        # LeRobot finds a task by the index of a data frame, which this tells pandas
        columns = [
            {
                'name': name,
                'field_name': name,
                'pandas_type': kind,
                'numpy_type': stored,
                'metadata': None,
            }
            for name, kind, stored in (
                ('task_index', 'int64', 'int64'),
                ('task', 'unicode', 'object'),
            )
        ]
        index = {'index_columns': ['task'], 'column_indexes': [], 'columns': columns}
        table = table.replace_schema_metadata({'pandas': json.dumps(index)})
        pyarrow.parquet.write_table(table, self._path / 'meta/tasks.parquet')

    def _info(self) -> dict[str, Any]:
        rate_hz, count = self._rate_hz, len(self._episodes)
        videos = f'videos/{{video_key}}/{_CHUNK}.mp4' if self._episodes[0].cameras else None
        names = list(self._episodes[0].joints)
        features: dict[str, Any] = {
            name: {'dtype': 'float32', 'shape': [len(names)], 'names': names}
            for name in _vectors(self._episodes[0])
        }
        for camera in self._episodes[0].cameras:
            features[_picture_key(camera)] = self._picture_feature(camera)
        for name in _COUNTERS:
            kind = 'float32' if name == 'timestamp' else 'int64'
            features[name] = {'dtype': kind, 'shape': [1], 'names': None}
        return {
            'codebase_version': VERSION,
            'robot_type': None,
            'total_episodes': count,
            'total_frames': sum(self._lengths),
            'total_tasks': len(self._tasks),
            'chunks_size': 1000,
            'data_files_size_in_mb': 100,
            'video_files_size_in_mb': 200,
            'fps': int(rate_hz) if rate_hz.is_integer() else rate_hz,
            'splits': {'train': f'0:{count}'},
            'data_path': f'data/{_CHUNK}.parquet',
            'video_path': videos,
            'features': features,
        }

    def _picture_feature(self, camera: Camera) -> dict[str, Any]:
        return {
            'dtype': 'video',
            'shape': [camera.height, camera.width, 3],
            'names': ['height', 'width', 'channels'],
            'info': {
                'video.height': camera.height,
                'video.width': camera.width,
                'video.codec': CODEC.removeprefix('libx'),
                'video.pix_fmt': PIXELS,
                'video.is_depth_map': False,
                'video.fps': self._rate_hz,
                'video.channels': 3,
                'has_audio': False,
            },
        }


def _vectors(episode: Episode) -> dict[str, Any]:
    """Return the series of an episode by the names of their columns."""
    series = {
        'observation.state': episode.states,
        'action': episode.commands,
        'observation.velocity': episode.velocities,
        'observation.effort': episode.efforts,
    }
    return {name: one for name, one in series.items() if one is not None}


def _picture_key(camera: Camera) -> str:
    return f'observation.images.{camera.name}'


def _check_alike(episodes: Sequence[Episode], rows: Sequence[Keyframes]) -> None:
    shapes = [
        (
            episode.joints,
            tuple(_vectors(episode)),
            tuple((c.name, c.height, c.width) for c in episode.cameras),
            one.rate_hz,
        )
        for episode, one in zip(episodes, rows, strict=True)
    ]
    for episode, shape in zip(episodes, shapes, strict=True):
        if shape != shapes[0]:
            raise ConfigError(
                f'episodes {episodes[0].name} and {episode.name} differ in joints, series, '
                f'cameras or rate, and a data set holds equal ones: {shapes[0]}, {shape}'
            )
    for camera in episodes[0].cameras:
        if camera.height % 2 or camera.width % 2:
            raise ConfigError(
                f'camera {camera.name} is {camera.height}x{camera.width}; H.264 needs even sizes'
            )
