# SPDX-License-Identifier: Apache-2.0
"""The engine process, and the watch that keeps one alive."""

import os
import queue
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.engine_life import EngineLife, EngineLimits, EngineWatch
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Beat, Done, Dropped, Ready
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ModelError
from xinfer_ros.models.registry import echo_contract

from .running_pipeline import ECHO, TIMEOUT_S, submit

LIMITS = EngineLimits(start_s=TIMEOUT_S, silence_s=TIMEOUT_S, hung_ns=30_000_000_000)


class Events:
    """Keeps what an engine watch tells."""

    def __init__(self) -> None:
        self.ready: queue.SimpleQueue[EngineLife] = queue.SimpleQueue()
        self.ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def engine_ready(self, life: EngineLife) -> None:
        self.ready.put(life)

    def engine_ended(self, next_epoch: int) -> None:
        self.ended.put(next_epoch)

    def engine_told(self, life: EngineLife, record: Beat | Timeline) -> None:
        pass

    def engine_hangs(self, life: EngineLife, hangs: bool) -> None:
        raise AssertionError('no unit takes long')

    def engine_record(self, life: EngineLife, record: Done | Dropped) -> None:
        raise AssertionError(f'nobody asked for {record}')


def test_the_engine_process_shares_its_slots_and_answers() -> None:
    link = EngineLink(ECHO)
    contract, slots = link.start(TIMEOUT_S)
    assert contract == echo_contract()
    assert isinstance(link.receive(TIMEOUT_S), Ready)
    slots.state[2] = 1.25
    link.send(submit(9, 2))
    while isinstance(done := link.receive(TIMEOUT_S), Beat):
        assert done.oldest_unit_ns >= 0
    assert isinstance(done, Done)
    assert done.key == 9
    np.testing.assert_allclose(slots.actions[2, 3, 0], 1.253, atol=1e-6)
    link.close()
    assert not link.is_alive


def test_a_link_that_was_closed_gives_nothing_more_and_does_not_raise() -> None:
    """The thread that receives may come a moment after the one that closes."""
    link = EngineLink(ECHO)
    link.close()
    assert link.receive() is None
    assert link.receive(1.0) is None
    with pytest.raises(ModelError):
        link.start(1.0)


def test_a_killed_engine_is_seen_at_once_and_another_takes_its_place() -> None:
    events = Events()
    watch = EngineWatch(ECHO, 41, LIMITS, MonotonicClock(), lambda text: None)
    watch.start(events)
    first = events.ready.get(timeout=TIMEOUT_S)
    assert first.epoch == 41
    os.kill(first.pid, signal.SIGKILL)
    assert events.ended.get(timeout=TIMEOUT_S) == 42
    second = events.ready.get(timeout=TIMEOUT_S)
    assert second.epoch == 42
    assert second.pid != first.pid
    watch.close()


def test_an_engine_that_hangs_is_killed_and_replaced() -> None:
    """SL-04: a process that lives but does nothing is as good as dead."""
    events = Events()
    limits = replace(LIMITS, silence_s=1.0)
    watch = EngineWatch(ECHO, 1, limits, MonotonicClock(), lambda text: None)
    watch.start(events)
    first = events.ready.get(timeout=TIMEOUT_S)
    os.kill(first.pid, signal.SIGSTOP)
    assert events.ended.get(timeout=TIMEOUT_S) == 2
    assert events.ready.get(timeout=TIMEOUT_S).pid != first.pid
    watch.close()


def test_a_watch_that_is_closed_at_any_moment_leaves_nothing_behind() -> None:
    before = {child.pid for child in psutil.Process().children()}
    for wait_for_ready in (False, True):
        events = Events()
        watch = EngineWatch(ECHO, 1, LIMITS, MonotonicClock(), lambda text: None)
        watch.start(events)
        if wait_for_ready:
            events.ready.get(timeout=TIMEOUT_S)
        watch.close()
        assert {child.pid for child in psutil.Process().children()} <= before


@pytest.mark.parametrize(
    'config',
    [
        ServerConfig(model='no such model', calibration='echo', spare_engine=False),
        ServerConfig(model='echo', calibration='tiny', spare_engine=False),
    ],
    ids=['model', 'calibration of another model'],
)
def test_settings_that_no_engine_can_serve_are_not_tried_again(config: ServerConfig) -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    gave_up: list[str] = []
    watch = EngineWatch(
        EngineSettings(config), 1, LIMITS, MonotonicClock(), gave_up.append, refused=said.put
    )
    watch.start(Events())
    assert said.get(timeout=TIMEOUT_S).startswith('the engine refuses the settings')
    watch.close()
    assert gave_up == []


def test_an_engine_that_can_not_start_is_given_up_after_three_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = ServerConfig(model='python:stuck_policy:broken', calibration='echo',
                          calibration_mismatch='warn', spare_engine=False)  # fmt: skip
    settings = EngineSettings(config)
    monkeypatch.setenv('PYTHONPATH', str(Path(__file__).parent))
    with pytest.raises(ModelError, match='ended before its model was loaded'):
        EngineLink(settings).start(TIMEOUT_S)
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    watch = EngineWatch(settings, 1, LIMITS, MonotonicClock(), said.put)
    watch.start(Events())
    assert said.get(timeout=TIMEOUT_S).startswith('3 engines in a row did not start')
    watch.close()
