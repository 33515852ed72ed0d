# SPDX-License-Identifier: Apache-2.0
"""A folder of decision logs: which run a name stands for, and what is missing of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.decision_log import BlockKind, block, part_head
from xinfer_ros.sched.log_files import load_log, part_path

from .test_decision_log import HEADER


def _write(folder: Path, run: int, part: int, lost_bytes: int = 0, end: bytes = b'') -> None:
    header = replace(HEADER, part=part, lost_bytes=lost_bytes, names={run: f'arm_{part}'})
    data = part_head(header, HEADER.core().snapshot())
    part_path(folder, run, part).write_bytes(data + (end or block(BlockKind.END, b'')))


def test_folder_stands_for_its_newest_run_unless_another_is_asked_for(tmp_path: Path) -> None:
    for run in (9, 10, 11_000):
        _write(tmp_path, run, 1)
    (tmp_path / 'notes.txt').write_text('not ours')
    assert load_log(tmp_path).run == 11_000
    assert load_log(tmp_path, 9).run == 9
    with pytest.raises(ConfigError, match='holds no run 5; there are 9 to 11000'):
        load_log(tmp_path, 5)


def test_file_stands_for_its_part_alone(tmp_path: Path) -> None:
    _write(tmp_path, 1, 1)
    _write(tmp_path, 1, 2)
    log = load_log(part_path(tmp_path, 1, 2))
    assert [part.header.part for part in log.parts] == [2]
    assert log.remarks() == ['the parts before 2 are not there any more']


def test_log_tells_what_is_missing_of_it(tmp_path: Path) -> None:
    for part in (3, 4, 6):
        _write(tmp_path, 1, part)
    _write(tmp_path, 1, 7, lost_bytes=500)
    _write(tmp_path, 1, 8, lost_bytes=500, end=b'torn')
    log = load_log(tmp_path)
    assert log.remarks() == [
        'the parts before 3 are not there any more',
        'between part 4 and 6 some are missing',
        'before part 7, 500 bytes of calls could not be written',
        'part 8 ends with 4 bytes of a torn block, which is left out',
        'it was not closed in order: its engine was killed, or still runs',
    ]
    assert [part.header.part for part in log.unbroken()] == [7, 8]
    assert log.names == {1: 'arm_8'}
    assert log.begins_ns == 0


def test_what_holds_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='holds no decision log; a server writes one'):
        load_log(tmp_path)
    with pytest.raises(ConfigError, match='none cannot be read: No such file'):
        load_log(tmp_path / 'none')
    (tmp_path / 'text').write_text('no log')
    with pytest.raises(ConfigError, match='text: it is no decision log'):
        load_log(tmp_path / 'text')
