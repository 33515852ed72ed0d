# SPDX-License-Identifier: Apache-2.0
"""What a written data set tells of itself, for the tools of LeRobot."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from xinfer_ros.episodes.episode import Camera
from xinfer_ros.episodes.reader import no_progress
from xinfer_ros.episodes.writers.lerobot import LerobotWriter
from xinfer_ros.errors import ConfigError

from ..samples import FRAMES, JOINTS, camera, sample

WRITER = LerobotWriter()


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set of two episodes."""
    path = tmp_path_factory.mktemp('lerobot') / 'set'
    WRITER.write([sample(), sample(task='Another.')], path, no_progress)
    return path


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_description_names_every_column(folder: Path) -> None:
    info = _json(folder / 'meta/info.json')
    assert (info['codebase_version'], info['fps']) == ('v3.0', 20)
    assert (info['total_episodes'], info['total_frames'], info['total_tasks']) == (2, 24, 2)
    assert info['features']['observation.state']['names'] == list(JOINTS)
    assert info['features']['observation.images.top']['shape'] == [48, 64, 3]
    data = pyarrow.parquet.read_table(folder / 'data/chunk-000/file-000.parquet')
    stored = {name for name, of in info['features'].items() if of['dtype'] != 'video'}
    assert stored == set(data.column_names)


def test_rows_are_counted_through(folder: Path) -> None:
    data = pyarrow.parquet.read_table(folder / 'data/chunk-000/file-000.parquet')
    assert data['index'].to_pylist() == list(range(2 * FRAMES))
    assert data['frame_index'].to_pylist() == [*range(FRAMES), *range(FRAMES)]
    assert data['task_index'].to_pylist() == [0] * FRAMES + [1] * FRAMES
    (first, second) = pyarrow.parquet.read_table(
        folder / 'meta/episodes/chunk-000/file-000.parquet'
    ).to_pylist()
    assert (first['dataset_to_index'], second['dataset_from_index']) == (FRAMES, FRAMES)
    key = 'videos/observation.images.top/from_timestamp'
    assert second[key] == pytest.approx(FRAMES / 20)


def test_tasks_are_found_by_name(folder: Path) -> None:
    """LeRobot reads them as a data frame whose index is the task."""
    table = pyarrow.parquet.read_table(folder / 'meta/tasks.parquet')
    told = json.loads(table.schema.metadata[b'pandas'])
    assert told['index_columns'] == ['task']
    assert {column['field_name'] for column in told['columns']} == set(table.column_names)
    assert table['task'].to_pylist() == ['Fold the towel.', 'Another.']


def test_statistics_are_those_of_the_rows(folder: Path) -> None:
    stats, episode = _json(folder / 'meta/stats.json'), sample()
    assert episode.states is not None
    mean = stats['observation.state']['mean']
    assert mean == pytest.approx(episode.states.values.mean(axis=0).tolist(), abs=1e-6)
    pictures = np.array(stats['observation.images.top']['mean'])
    assert pictures.shape == (3, 1, 1)
    assert np.all((pictures > 0.1) & (pictures < 0.9))


def _odd(given: Camera) -> Camera:
    return replace(given, height=47)


def test_odd_pictures_are_refused(tmp_path: Path) -> None:
    cameras = (_odd(camera('top', jpeg=True)),)
    with pytest.raises(ConfigError, match=r'47x64; H\.264 needs even sizes'):
        WRITER.write([sample(cameras=cameras)], tmp_path / 'set', no_progress)
