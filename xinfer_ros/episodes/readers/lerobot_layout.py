# SPDX-License-Identifier: Apache-2.0
"""
Where a LeRobot data set keeps what.

Version 2 has a parquet file and a video for each episode, version 3 several episodes in each, with
their places in ``meta/episodes``. Source: the formats v2.1 and v3.0 of
huggingface/lerobot.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xinfer_ros.errors import ConfigError

INFO = 'meta/info.json'


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """
    One column of a data set.

    :param name: such as ``observation.images.top``
    :param video: whether it is a video
    :param image: whether it is pictures within the rows
    :param joints: names of its numbers
    :param height: of its pictures, 0 if it is none [pixels]
    :param width: of its pictures, 0 if it is none [pixels]
    """

    name: str
    video: bool
    image: bool
    joints: tuple[str, ...]
    height: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeFiles:
    """
    Where an episode lies.

    :param index: its number
    :param task: its instruction
    :param length: rows, None if not told
    :param data: its parquet file
    :param videos: its video of each camera, and where in it the episode begins [s]
    """

    index: int
    task: str
    length: int | None
    data: Path
    videos: Mapping[str, tuple[Path, float]]


class Layout:
    """
    The layout of a data set.

    :param path: its folder
    :raises ConfigError: if it tells of none, or of a version that is not known
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._info: dict[str, Any] = json.loads((path / INFO).read_text())
            self.version = str(self._info['codebase_version'])
            self.features = {
                name: _feature(name, spec) for name, spec in self._info['features'].items()
            }
            self.rate_hz = float(self._info['fps'])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f'data set {path}: {INFO}: {type(error).__name__} {error}'
            ) from error
        if self.version.lstrip('v').split('.')[0] not in ('2', '3'):
            raise ConfigError(
                f'data set {path}: version {self.version}; readable: v2.0, v2.1, v3.0'
            )

    def episodes(self) -> list[EpisodeFiles]:
        """
        Return where each episode lies, by number.

        :raises ConfigError: if the folder does not tell, or tells of none
        """
        three = self.version.lstrip('v').startswith('3')
        try:
            found = list(self._episodes_3() if three else self._episodes_2())
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise ConfigError(
                f'data set {self.path}: meta/episodes: {type(error).__name__} {error}'
            ) from error
        if not found:
            raise ConfigError(f'data set {self.path}: meta/ tells of no episode')
        return sorted(found, key=lambda files: files.index)

    def _episodes_2(self) -> Iterator[EpisodeFiles]:
        chunk_size = int(self._info.get('chunks_size', 1000))
        for line in (self.path / 'meta/episodes.jsonl').read_text().splitlines():
            if not line.strip():
                continue
            record = json.loads(line)
            index = int(record['episode_index'])
            place = {'episode_chunk': index // chunk_size, 'episode_index': index}
            yield EpisodeFiles(
                index=index,
                task=_first(record.get('tasks')),
                length=record.get('length'),
                data=self.path / self._info['data_path'].format(**place),
                videos={
                    name: (
                        self.path / self._info['video_path'].format(video_key=name, **place),
                        0.0,
                    )
                    for name, feature in self.features.items()
                    if feature.video
                },
            )

    def _episodes_3(self) -> Iterator[EpisodeFiles]:
        import pyarrow.parquet

        for path in sorted((self.path / 'meta/episodes').rglob('*.parquet')):
            with pyarrow.parquet.ParquetFile(path) as file:
                names = [name for name in file.schema_arrow.names if not name.startswith('stats/')]
                records = file.read(columns=names).to_pylist()
            for record in records:
                yield EpisodeFiles(
                    index=int(record['episode_index']),
                    task=_first(record.get('tasks')),
                    length=record.get('length'),
                    data=self._place('data_path', record, 'data'),
                    videos={
                        name: (
                            self._place('video_path', record, f'videos/{name}', video_key=name),
                            float(record[f'videos/{name}/from_timestamp']),
                        )
                        for name, feature in self.features.items()
                        if feature.video
                    },
                )

    def _place(self, pattern: str, record: dict[str, Any], prefix: str, **keys: str) -> Path:
        chunk, file = (int(record[f'{prefix}/{kind}_index']) for kind in ('chunk', 'file'))
        text: str = self._info[pattern]
        return self.path / text.format(chunk_index=chunk, file_index=file, **keys)


def _first(tasks: object) -> str:
    return str(tasks[0]) if isinstance(tasks, list) and tasks else ''


def _feature(name: str, spec: dict[str, Any]) -> Feature:
    kind, shape = spec['dtype'], [int(size) for size in spec['shape']]
    height = width = 0
    pictured = kind in ('video', 'image')
    if pictured:
        last = len(shape) == 3 and shape[2] in (1, 3, 4)
        height, width = shape[:2] if last else shape[1:3]
    return Feature(
        name=name,
        video=kind == 'video',
        image=kind == 'image',
        joints=() if pictured else _joints(spec.get('names'), shape),
        height=height,
        width=width,
    )


def _joints(names: object, shape: list[int]) -> tuple[str, ...]:
    """Return the names of a vector's numbers, which stand in a list or a dictionary of lists."""
    if isinstance(names, dict):
        lists = [value for value in names.values() if isinstance(value, list)]
        names = [name for value in lists for name in value] or list(names)
    size = shape[0] if shape else 1
    if isinstance(names, list) and len(names) == size == len(set(map(str, names))):
        return tuple(map(str, names))
    return tuple(f'joint_{index}' for index in range(size))
