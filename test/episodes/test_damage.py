# SPDX-License-Identifier: Apache-2.0
"""Bags with bytes that are not what was written: refused in words, or read with what is left."""

import random
from pathlib import Path

import pytest
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from xinfer_ros.episodes.bag import Bag, bag_files
from xinfer_ros.errors import ConfigError

from .samples import copied

ROUNDS = 25


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return a bag of each storage."""
    folder = tmp_path_factory.mktemp('bags')
    return [
        copied(folder / 'mcap', StoragePlugin.MCAP),
        copied(folder / 'packed', StoragePlugin.MCAP, CompressionMode.FILE),
        copied(folder / 'sqlite3', StoragePlugin.SQLITE3),
    ]


@pytest.mark.parametrize('kind', [0, 1, 2])
def test_damage_anywhere_is_told_and_never_crashes(
    bags: list[Path], tmp_path: Path, kind: int
) -> None:
    """BR-02, SE-01: most of it near the ends, where headers and indexes are."""
    (file,) = bag_files(bags[kind])
    whole = file.read_bytes()
    drawn = random.Random(kind)
    readable, refusals, path = 0, [], tmp_path / file.name
    for _ in range(ROUNDS):
        data = bytearray(whole)
        end = drawn.choice([400, 20_000, len(data)])
        for _ in range(drawn.choice([1, 8, 64])):
            place = drawn.randrange(end)
            data[drawn.choice([place, len(data) - 1 - place])] = drawn.randrange(256)
        path.write_bytes(data)
        try:
            with Bag(path) as bag:
                readable += sum(message.data is not None for message in bag.messages()) > 0
        except ConfigError as error:
            refusals.append(str(error))
    assert readable > ROUNDS / 4
    assert all(str(path) in refusal for refusal in refusals)
