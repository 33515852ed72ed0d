# SPDX-License-Identifier: Apache-2.0
"""How real engine processes end: with which code, with which record, and never not at all."""

import itertools
import os
import queue
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.engine.health import ExitCode
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Beat, Cancel, Dropped, Ready, Submit
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import Reason
from xinfer_ros.predict.run_record import load_run

TIMEOUT_S = 60.0
S = 1_000_000_000


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PYTHONPATH', str(Path(__file__).parent))


def _link(factory: str, **changes: Any) -> EngineLink:
    config = ServerConfig(
        model=f'python:stuck_policy:{factory}', calibration='echo', calibration_mismatch='warn',
        spare_engine=False, **changes,
    )  # fmt: skip
    return EngineLink(EngineSettings(config))


@pytest.fixture
def links() -> Iterator[list[EngineLink]]:
    """Return a list of what is closed at the end."""
    opened: list[EngineLink] = []
    yield opened
    for link in opened:
        link.kill()
        link.close()


def _submit(key: int) -> Submit:
    request = Request(
        key=key, robot=key, slot=key, arrival_ns=MonotonicClock().now_ns(), budget_ns=20 * S,
        reserved_ns=0, period_ns=S,
    )  # fmt: skip
    return Submit(request=request)


def _rest(link: EngineLink) -> list[Any]:
    """Return every record but beats until the process has ended."""
    records = iter(lambda: link.receive(TIMEOUT_S), None)
    return [record for record in records if not isinstance(record, Beat)]


def test_hung_engine_ends_by_itself_says_how_long_it_waited_and_leaves_its_record(
    links: list[EngineLink], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SL-04."""
    path = tmp_path / 'run.npz'
    link = _link('make', hung_after_s=0.2, unit_timeout_s=1.0, record_run=str(path))
    links.append(link)
    link.start(TIMEOUT_S)
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    link.send(_submit(1))
    assert _rest(link) == []
    link.close()
    assert link.returncode == ExitCode.HUNG
    assert 'a unit has not ended within 1 s' in capfd.readouterr().err
    run = load_run(path)
    assert run.members.tolist() == [[run.transitions[0, 1], 1, 1]]


def test_record_that_can_not_be_written_does_not_hide_why_the_engine_ended(
    links: list[EngineLink], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'gone' / 'run.npz'
    link = _link('make', hung_after_s=0.2, unit_timeout_s=1.0, record_run=str(path))
    links.append(link)
    link.start(TIMEOUT_S)
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    link.send(_submit(1))
    assert _rest(link) == []
    link.close()
    assert link.returncode == ExitCode.HUNG
    assert 'the record of the run is lost' in capfd.readouterr().err


def test_lack_of_memory_is_told_and_three_units_of_it_end_the_engine(
    links: list[EngineLink],
) -> None:
    link = _link('make_hungry')
    links.append(link)
    link.start(TIMEOUT_S)
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    for key in (1, 2, 3):
        link.send(_submit(key))
    dropped = _rest(link)
    assert [(record.key, record.reason) for record in dropped if isinstance(record, Dropped)] == [
        (key, Reason.OUT_OF_MEMORY) for key in (1, 2, 3)
    ]
    link.close()
    assert link.returncode == ExitCode.OUT_OF_MEMORY


@pytest.mark.parametrize('factory', ['make_stuck_at_once', 'make'])
def test_engine_ends_when_its_front_end_goes_away_whatever_it_is_doing(
    links: list[EngineLink], factory: str, tmp_path: Path
) -> None:
    """In the middle of a warm-up that never ends, or of a unit; its record is not lost."""
    path = tmp_path / 'run.npz'
    link = _link(factory, record_run=str(path))
    links.append(link)
    link.start(TIMEOUT_S)
    if factory == 'make':
        assert isinstance(link.receive(TIMEOUT_S), Ready)
        link.send(_submit(1))
        while not (isinstance(beat := link.receive(TIMEOUT_S), Beat) and beat.oldest_unit_ns):
            pass  # the unit runs
    link.close()
    assert link.returncode == ExitCode.OK
    assert path.exists() is (factory == 'make')


def test_sending_never_waits_for_the_engine_although_somebody_receives(
    links: list[EngineLink],
) -> None:
    """The watch receives with a time-out; the thread that sends must not wait as long."""
    link = _link('make')
    links.append(link)
    os.kill(link.pid, signal.SIGSTOP)
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def watch() -> None:
        try:
            received.put(link.receive(TIMEOUT_S))
        except TimeoutError:
            received.put('nothing in time')

    watching = threading.Thread(target=watch)
    watching.start()
    for key in itertools.count():
        link.send(Cancel(key=key))
        if not received.empty() or not link.is_alive:
            break
    watching.join()
    assert received.get_nowait() is None  # it was killed, long before the time was over
    assert link.returncode == -signal.SIGKILL
