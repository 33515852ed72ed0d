# SPDX-License-Identifier: Apache-2.0
"""LeRobot data sets: version 2 with a file an episode, version 3 with several in one."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from xinfer_ros.episodes.conversion import make_writer
from xinfer_ros.episodes.pictures import decoded
from xinfer_ros.episodes.reader import no_progress
from xinfer_ros.episodes.readers.lerobot import LerobotReader
from xinfer_ros.episodes.video import VideoWriter
from xinfer_ros.errors import ConfigError

from ..samples import FRAMES, camera, picture, sample

READER = LerobotReader()
RATE = 20
VIDEO_PATH = 'videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4'
KEY = 'observation.images.top'


def _version_2(folder: Path, *, episodes: int = 2, **changes: Any) -> Path:
    """Write a data set of version 2.1 as LeRobot lays it out."""
    info = {
        'codebase_version': 'v2.1',
        'fps': RATE,
        'chunks_size': 1000,
        'data_path': 'data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet',
        'video_path': VIDEO_PATH,
        'features': {
            'observation.state': {
                'dtype': 'float32',
                'shape': [2],
                'names': {'motors': ['a', 'b']},
            },
            'action': {'dtype': 'float32', 'shape': [2], 'names': ['a', 'b']},
            KEY: {
                'dtype': 'video',
                'shape': [3, 48, 64],
                'names': ['channels', 'height', 'width'],
            },
        },
    }
    lines = []
    for number in range(episodes):
        rows = np.arange(FRAMES)
        table = {
            'observation.state': [[row + 100.0 * number, 0.5] for row in rows],
            'action': [[row + 0.25, 0.5] for row in rows],
            'timestamp': (rows / RATE).astype(np.float32),
            'episode_index': np.full(FRAMES, number),
        }
        data = folder / f'data/chunk-000/episode_{number:06d}.parquet'
        data.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table(table), data)
        video = folder / f'videos/chunk-000/{KEY}/episode_{number:06d}.mp4'
        with VideoWriter(video, Fraction(RATE), 48, 64) as writer:
            for row in rows:
                writer.write(picture(int(row) + 3 * number))
        lines.append({'episode_index': number, 'tasks': [f'Task {number}.'], 'length': FRAMES})
    (folder / 'meta').mkdir()
    (folder / 'meta/info.json').write_text(json.dumps(info | changes))
    (folder / 'meta/episodes.jsonl').write_text('\n'.join(map(json.dumps, lines)) + '\n')
    return folder


def _error(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        READER.read(folder, READER.names(folder)[0])
    return str(caught.value)


def test_version_2_is_read(tmp_path: Path) -> None:
    folder = _version_2(tmp_path / 'set')
    assert READER.recognises(folder)
    assert READER.names(folder) == ('0', '1')
    episode = READER.read(folder, '1')
    assert episode.name == 'set_1'
    assert episode.joints == ('a', 'b')
    assert episode.task == 'Task 1.'
    assert episode.states is not None
    assert episode.commands is not None
    assert episode.states.values[:3, 0].tolist() == [100.0, 101.0, 102.0]
    assert episode.states.times_ns.tolist() == [row * 50_000_000 for row in range(FRAMES)]
    assert episode.commands.values[1].tolist() == [1.25, 0.5]
    (top,) = episode.cameras
    assert (top.name, top.stored, top.height, top.width) == ('top', 'h264', 48, 64)


def test_frames_of_a_video_are_those_of_its_rows(tmp_path: Path) -> None:
    top = READER.read(_version_2(tmp_path / 'set'), '1').cameras[0]
    frames = list(top.frames(200_000_000))
    assert [frame.time_ns for frame in frames] == [r * 50_000_000 for r in range(4, FRAMES)]
    pictures = [picture(row + 3).astype(float) for row in range(FRAMES)]
    for row, frame in enumerate(frames, 4):
        errors = [np.abs(decoded(frame) - one).mean() for one in pictures]
        assert int(np.argmin(errors)) == row


def test_version_3_holds_several_episodes_in_a_file(tmp_path: Path) -> None:
    episodes = [sample(name='one'), sample(name='two', task='Another.')]
    make_writer('lerobot').write(episodes, tmp_path / 'set', no_progress)
    assert len(list((tmp_path / 'set').rglob('*.mp4'))) == 2
    assert READER.names(tmp_path / 'set') == ('0', '1')
    second = READER.read(tmp_path / 'set', '1')
    assert second.task == 'Another.'
    frames = list(second.cameras[0].frames())
    assert [frame.time_ns for frame in frames] == [row * 50_000_000 for row in range(FRAMES)]
    for row in (0, FRAMES - 1):
        assert np.abs(decoded(frames[row]).astype(float) - picture(row)).mean() < 6


def test_pictures_within_the_rows_are_read(tmp_path: Path) -> None:
    folder = _version_2(tmp_path / 'set', episodes=1)
    pictures = [frame.data for frame in camera('top', jpeg=True).frames()]
    path = folder / 'data/chunk-000/episode_000000.parquet'
    table = pyarrow.parquet.read_table(path)
    column = pyarrow.array([{'bytes': data, 'path': ''} for data in pictures])
    pyarrow.parquet.write_table(table.append_column(KEY, column), path)
    info = json.loads((folder / 'meta/info.json').read_text())
    info['features'][KEY] = {'dtype': 'image', 'shape': [48, 64, 3], 'names': None}
    (folder / 'meta/info.json').write_text(json.dumps(info))
    (top,) = READER.read(folder, '0').cameras
    assert (top.encoding, top.height, top.width) == ('jpeg', 48, 64)
    assert [frame.data for frame in top.frames(100_000_000)] == pictures[2:]


def _without_data(folder: Path) -> None:
    (folder / 'data/chunk-000/episode_000000.parquet').unlink()


def _broken_data(folder: Path) -> None:
    (folder / 'data/chunk-000/episode_000000.parquet').write_bytes(b'PAR1 no')


def _without_video(folder: Path) -> None:
    next(folder.rglob('episode_000000.mp4')).unlink()


def _without_rows(folder: Path) -> None:
    other = folder / 'data/chunk-000/episode_000001.parquet'
    (folder / 'data/chunk-000/episode_000000.parquet').write_bytes(other.read_bytes())


@pytest.mark.parametrize('breaks', [_without_data, _broken_data, _without_video, _without_rows])
def test_broken_data_set_is_refused(tmp_path: Path, breaks: Callable[[Path], None]) -> None:
    folder = _version_2(tmp_path / 'set')
    breaks(folder)
    assert str(folder) in _error(folder)


@pytest.mark.parametrize(
    ('changes', 'part'),
    [
        ({'codebase_version': 'v1.6'}, 'version v1.6; readable: v2.0, v2.1, v3.0'),
        ({'features': 5}, 'AttributeError'),
        ({'fps': 'fast'}, 'ValueError'),
        ({'data_path': 'data/{nothing}'}, "KeyError 'nothing'"),
    ],
)
def test_broken_description_is_refused(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    folder = _version_2(tmp_path / 'set', **changes)
    assert part in _error(folder)


def test_unknown_episode_is_refused(tmp_path: Path) -> None:
    folder = _version_2(tmp_path / 'set')
    with pytest.raises(ConfigError, match='episode 7 is none of 0 to 1'):
        READER.read(folder, '7')
