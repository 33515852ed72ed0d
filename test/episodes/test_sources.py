# SPDX-License-Identifier: Apache-2.0
"""Sources are told by their content; what can't be read is refused in words that help."""

import shutil
from pathlib import Path

import pytest

from xinfer_ros.episodes.bag import Bag
from xinfer_ros.episodes.conversion import make_writer
from xinfer_ros.episodes.messages import EpisodeRecording
from xinfer_ros.episodes.reader import no_progress
from xinfer_ros.episodes.sources import (
    all_episodes,
    find_episode,
    find_episodes,
    shipped_episodes,
)
from xinfer_ros.errors import ConfigError

from .samples import NAMES, SHIPPED, sample


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return a folder with a bag, a data set, a file and something else."""
    folder = tmp_path / 'mixed'
    folder.mkdir()
    shutil.copytree(SHIPPED / NAMES[0], folder / 'a_bag')
    make_writer('lerobot').write([sample(), sample()], folder / 'b_set', no_progress)
    make_writer('hdf5').write([sample()], folder / 'c.hdf5', no_progress)
    (folder / 'notes.txt').write_text('nothing')
    return folder


def test_shipped_episodes_are_found_by_name() -> None:
    assert shipped_episodes(SHIPPED) == NAMES
    found = all_episodes(NAMES, SHIPPED)
    assert [str(one) for one in found] == [str(SHIPPED / name) for name in NAMES]


def test_every_format_is_told_by_its_content(mixed: Path) -> None:
    found = find_episodes(str(mixed), SHIPPED)
    assert [(one.reader.format, str(one)) for one in found] == [
        ('rosbag2', f'{mixed}/a_bag'),
        ('lerobot', f'{mixed}/b_set#0'),
        ('lerobot', f'{mixed}/b_set#1'),
        ('hdf5', f'{mixed}/c.hdf5'),
    ]
    for one in found:
        assert [str(again) for again in find_episodes(str(one), SHIPPED)] == [str(one)]


def test_bags_are_played_as_they_are_and_other_formats_as_messages(mixed: Path) -> None:
    kinds = []
    for one in find_episodes(str(mixed), SHIPPED):
        recording = one.recording()
        kinds.append(type(recording))
        recording.close()
    assert kinds == [Bag, EpisodeRecording, EpisodeRecording, EpisodeRecording]


def test_one_of_several_episodes_is_chosen(mixed: Path) -> None:
    assert find_episode(f'{mixed}/b_set#1', SHIPPED).name == '1'
    with pytest.raises(ConfigError, match='behind the # may stand: 0, 1'):
        find_episode(f'{mixed}/b_set#2', SHIPPED)


@pytest.mark.parametrize('name', ['transfer_cube', '', '/', '/tmp/none', 'record.py'])
def test_unknown_source_is_refused_and_what_is_readable_is_named(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_episodes(name, SHIPPED)
    assert f'episode {name!r}' in str(caught.value)
    assert 'readable are rosbag2' in str(caught.value)
    assert ', '.join(NAMES) in str(caught.value)


def test_what_was_found_instead_is_told(tmp_path: Path) -> None:
    (tmp_path / 'notes.txt').write_text('hello')
    with pytest.raises(ConfigError, match=r'the folder holds notes\.txt'):
        find_episodes(str(tmp_path), SHIPPED)
    with pytest.raises(ConfigError, match="the file begins with b'hello'"):
        find_episodes(str(tmp_path / 'notes.txt'), SHIPPED)
    with pytest.raises(ConfigError, match='shipped episodes: none found'):
        find_episodes('any', tmp_path)
