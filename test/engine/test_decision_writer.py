# SPDX-License-Identifier: Apache-2.0
"""A decision log is written in parts that follow each other; what is lost is counted and told."""

from dataclasses import asdict
from pathlib import Path

import pytest

from xinfer_ros.engine.decision_writer import PAUSE_DRAINS, DecisionWriter, check_log_folder
from xinfer_ros.engine.log_disk import WriteFailure
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.decision_replay import check_agreement
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.decision_log import LogHeader, LogPart, read_part
from xinfer_ros.sched.log_files import DecisionLog, load_log
from xinfer_ros.sched.settings import policy_settings

MS = 1_000_000
PAPER = load_calibration('paper')
HEADER = LogHeader(
    policy='foresight', settings=asdict(policy_settings('foresight', PAPER)), calibration=PAPER,
    model='tiny', date='2026-01-31',
)  # fmt: skip


class ScriptedDisk:
    """A disk that keeps everything, and fails when it is told to."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.failure: WriteFailure | None = None
        self.backlog_bytes = 0
        self.is_closed = False

    def begin(self, part: int) -> None:
        self.parts[part] = b''

    def put(self, data: bytes) -> None:
        self.parts[max(self.parts)] += data

    def close(self, timeout_s: float) -> None:
        self.is_closed = True

    def fail(self, part: int, written_bytes: int) -> None:
        """Let everything of a part after so many bytes be lost."""
        self.parts[part] = self.parts[part][:written_bytes]
        self.failure = WriteFailure(part=part, why='no space', written_bytes=written_bytes)

    def read(self) -> list[LogPart]:
        return [read_part(data) for data in self.parts.values()]


class Bench:
    """A writer with a core that random events happen to."""

    def __init__(self, part_bytes: int = 10**9) -> None:
        self.core = HEADER.core()
        self.disk = ScriptedDisk()
        self.writer = DecisionWriter(self.core, HEADER, self.disk, part_bytes)
        self._last_key = 0

    def beats(self, count: int = 1) -> None:
        """Let a request pass the lanes between beats, and others come."""
        for _ in range(count):
            for _ in range(3):
                self._last_key += 1
                self._request(self._last_key, self._last_key * 20 * MS)
            self.writer.drain()

    def _request(self, key: int, now_ns: int) -> None:
        robot, budget_ns = key % 6, (60 + key % 5 * 40) * MS
        self.core.submit(
            now_ns=now_ns, key=key, robot=robot, arrival_ns=now_ns - MS, budget_ns=budget_ns,
            reserved_ns=4 * MS, period_ns=180 * MS,
        )  # fmt: skip
        for step in range(1, 5):
            at_ns = now_ns + step * 4 * MS
            self.core.release(at_ns)
            for number, _, _ in self.core.dispatch(at_ns):
                for ended in self.core.complete(at_ns + 3 * MS, number):
                    self.core.pace_ns(ended % 6)


def test_parts_follow_each_other_to_the_last_bit_of_the_state() -> None:
    bench = Bench(part_bytes=9_000)
    bench.writer.named(2, 'arm')
    bench.writer.named(2, 'arm')
    bench.beats(30)
    bench.writer.close()
    log = DecisionLog(parts=tuple(bench.disk.read()))
    found = check_agreement(log)
    assert found.difference is None
    assert found.calls > 500
    assert found.states == len(log.parts) - 1 > 2
    assert log.remarks() == []
    assert all(part.is_closed for part in log.parts)
    assert log.parts[-1].header.names == {2: 'arm'}
    assert bench.disk.is_closed


def test_lost_calls_are_counted_and_after_a_pause_a_new_part_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.beats(3)
    bench.disk.fail(1, written_bytes=len(bench.disk.parts[1]) - 100)
    bench.beats()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith('decision log: part 1 cannot be written: no space; ')
    bench.writer.named(4, 'late')
    bench.beats(PAUSE_DRAINS)
    assert len(bench.disk.parts) == 2
    bench.beats(3)
    bench.writer.close()
    first, second = bench.disk.read()
    assert second.header.lost_bytes > 100
    assert second.header.names == {4: 'late'}
    assert first.torn_bytes > 0
    found = check_agreement(DecisionLog(parts=(first, second)))
    assert found.difference is None
    assert found.states == 0  # between them the state cannot be compared
    assert len(caplog.records) == 1


def test_disk_that_is_far_behind_is_left_alone_for_a_while() -> None:
    bench = Bench()
    bench.beats()
    size = len(bench.disk.parts[1])
    bench.disk.backlog_bytes = 10**9
    bench.beats(2)
    assert len(bench.disk.parts[1]) == size
    bench.disk.backlog_bytes = 0
    bench.beats(PAUSE_DRAINS)
    assert bench.disk.read()[1].header.lost_bytes > 0


def test_folder_is_made_and_gets_a_new_run_each_time(tmp_path: Path) -> None:
    for run in (1, 2):
        core = HEADER.core()
        writer = DecisionWriter.into(tmp_path / 'log', core, HEADER, 1_000_000)
        core.dispatch(5)
        writer.close()
        log = load_log(tmp_path / 'log')
        assert log.run == run
        assert [call.now_ns for call in log.parts[0].calls()] == [5]


def test_place_that_can_be_no_folder_is_refused(tmp_path: Path) -> None:
    check_log_folder(tmp_path / 'new')
    check_log_folder(Path('relative'))
    with pytest.raises(ConfigError, match=r'there is no folder .*: make it first'):
        check_log_folder(tmp_path / 'no' / 'such')
    (tmp_path / 'file').touch()
    with pytest.raises(ConfigError, match='which is no folder; name a folder'):
        check_log_folder(tmp_path / 'file')
    with pytest.raises(ConfigError, match=r'decision_log .*: File exists'):
        DecisionWriter.into(tmp_path / 'file', HEADER.core(), HEADER, 1_000_000)
