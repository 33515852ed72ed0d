# SPDX-License-Identifier: Apache-2.0
"""How real engine processes end: with which code, with which log, and never not at all."""

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
from xinfer_ros.engine.seen import Named
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import Reason
from xinfer_ros.sched.journal import CallKind
from xinfer_ros.sched.log_files import load_log

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


def _submitted(folder: Path) -> list[int]:
    """Return the requests that the decision log in a folder tells of."""
    calls = (call for part in load_log(folder).parts for call in part.calls())
    return [call.named()['key'] for call in calls if call.kind is CallKind.SUBMIT]


def test_hung_engine_ends_by_itself_says_how_long_it_waited_and_leaves_its_log(
    links: list[EngineLink], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SL-04."""
    link = _link('make', hung_after_s=0.2, unit_timeout_s=1.0, decision_log=str(tmp_path / 'log'))
    links.append(link)
    link.start(TIMEOUT_S)
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    link.send(_submit(1))
    assert _rest(link) == []
    link.close()
    assert link.returncode == ExitCode.HUNG
    assert 'a unit has not ended within 1 s' in capfd.readouterr().err
    assert _submitted(tmp_path / 'log') == [1]
    assert load_log(tmp_path / 'log').remarks() == []


def test_engine_that_is_killed_leaves_what_it_had_told_in_its_beats(
    links: list[EngineLink], tmp_path: Path
) -> None:
    link = _link('make', decision_log=str(tmp_path))
    links.append(link)
    link.start(TIMEOUT_S)
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    link.send(Named(robot=1, name='arm'))
    link.send(_submit(1))
    for _ in range(3):  # beats after the unit was issued: the thread has long written the first
        while not (isinstance(beat := link.receive(TIMEOUT_S), Beat) and beat.oldest_unit_ns):
            pass
    os.kill(link.pid, signal.SIGKILL)
    assert _rest(link) == []
    assert _submitted(tmp_path) == [1]
    log = load_log(tmp_path)
    assert log.names == {1: 'arm'}
    assert log.remarks() == ['it was not closed in order: its engine was killed, or still runs']


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
    """In the middle of a warm-up that never ends, or of a unit; its decision log is not lost."""
    link = _link(factory, decision_log=str(tmp_path))
    links.append(link)
    link.start(TIMEOUT_S)
    if factory == 'make':
        assert isinstance(link.receive(TIMEOUT_S), Ready)
        link.send(_submit(1))
        while not (isinstance(beat := link.receive(TIMEOUT_S), Beat) and beat.oldest_unit_ns):
            pass  # the unit runs
    link.close()
    assert link.returncode == ExitCode.OK
    assert [path.is_file() for path in tmp_path.iterdir()] == [True] * (factory == 'make')


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
    link.close()  # its connection ends before it can be waited for
    assert link.returncode == -signal.SIGKILL
