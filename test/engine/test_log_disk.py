# SPDX-License-Identifier: Apache-2.0
"""The thread that writes a decision log: in order, within its room, and never in the way."""

from pathlib import Path

from xinfer_ros.engine.log_disk import LogDisk
from xinfer_ros.sched.log_files import log_files

TIMEOUT_S = 30.0


def _parts(folder: Path) -> dict[tuple[int, int], bytes]:
    return {(file.run, file.part): file.path.read_bytes() for file in log_files(folder)}


def test_what_is_put_is_written_in_its_order(tmp_path: Path) -> None:
    disk = LogDisk(tmp_path, 10_000)
    disk.begin(1)
    for piece in (b'one ', b'two ', b'three'):
        disk.put(piece)
    disk.begin(2)
    disk.put(b'four')
    disk.close(TIMEOUT_S)
    assert _parts(tmp_path) == {(1, 1): b'one two three', (1, 2): b'four'}
    assert disk.backlog_bytes == 0
    assert disk.failure is None


def test_oldest_parts_go_first_those_of_earlier_runs_too(tmp_path: Path) -> None:
    for run in (1, 2):
        disk = LogDisk(tmp_path, 1_000)
        assert disk.run == run
        for part in range(1, 7):
            disk.begin(part)
            disk.put(bytes(150))
        disk.close(TIMEOUT_S)
    assert list(_parts(tmp_path)) == [(2, part) for part in range(1, 7)]
    assert sum(map(len, _parts(tmp_path).values())) <= 1_000


def test_failure_is_told_with_what_was_written_and_the_next_part_is_tried(tmp_path: Path) -> None:
    folder = tmp_path / 'log'
    folder.mkdir()
    disk = LogDisk(folder, 10_000)
    folder.rmdir()
    disk.begin(1)
    disk.put(b'lost')
    disk.close(TIMEOUT_S)
    assert disk.failure is not None
    assert (disk.failure.part, disk.failure.written_bytes) == (1, 0)
    assert disk.failure.why == 'No such file or directory'
    assert disk.backlog_bytes == 0
