# SPDX-License-Identifier: Apache-2.0
"""The pipeline, its lanes and the engine process itself."""

import os
import queue
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.codec import decode, encode
from xinfer_ros.engine.engine_life import EngineLife, EngineLimits, EngineWatch
from xinfer_ros.engine.inbox import QueueInbox
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.records import (
    Announce,
    Beat,
    Cancel,
    Contract,
    Done,
    Dropped,
    Ready,
    Record,
    SetBudget,
    Start,
    Submit,
)
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.predict.calibration import load_calibration, save_calibration
from xinfer_ros.sched.registry import make_scheduler

ECHO = EngineSettings(ServerConfig(model='echo', max_robots=1))
TIMEOUT_S = 30.0
LIMITS = EngineLimits(start_s=TIMEOUT_S, silence_s=TIMEOUT_S, hung_ns=30_000_000_000)


def submit(key: int, slot: int = 0, budget_ns: int = 10**10) -> Submit:
    """Return a request that has just arrived."""
    request = Request(
        key=key,
        robot=1,
        slot=slot,
        arrival_ns=time.monotonic_ns(),
        budget_ns=budget_ns,
        reserved_ns=0,
        period_ns=180_000_000,
    )
    return Submit(request=request)


@pytest.mark.parametrize(
    'record',
    [
        Start(),
        Ready(),
        Beat(oldest_unit_ns=5, slowdown=1.25, correction=(1.0, 2.0, 0.5), mirror_error=0.5),
        submit(3),
        Announce(robot=2, arrival_ns=5, budget_ns=6, period_ns=7, sight=None),
        Announce(
            robot=2,
            arrival_ns=5,
            budget_ns=6,
            period_ns=7,
            sight=QueueSight(executed_steps=3, leftover_steps=2, horizon_steps=16, spacing_ns=9),
        ),
        Cancel(key=4),
        SetBudget(key=5, budget_ns=6),
        Done(key=7, queue_ns=1, vit_ns=2, prefill_ns=3, action_ns=4, ask_after_ns=5),
        Dropped(key=8, reason=Reason.EXPIRED, detail='late'),
        Contract(model=echo_contract(), num_slots=4),
    ],
    ids=lambda record: type(record).__name__,
)
def test_every_record_survives_the_way_between_the_processes(record: Record) -> None:
    assert decode(encode(record)) == record


def test_an_unknown_record_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown record 'Nonsense'; known: Start"):
        decode(b'["Nonsense",{}]')


def test_engine_takes_the_calibration_of_its_model_unless_told_otherwise() -> None:
    assert EngineSettings(ServerConfig(model='echo')).device().name == 'echo'
    told = ServerConfig(model='echo', calibration='tiny')
    assert EngineSettings(told).device().name == 'tiny'


def test_calibration_that_does_not_exist_is_refused_with_those_that_do() -> None:
    settings = EngineSettings(ServerConfig(calibration='tinny'))
    with pytest.raises(ConfigError, match=r'no calibration tinny; shipped: .*tiny'):
        settings.device()


def test_device_is_cut_to_one_unit_of_one_request_without_concurrency_in_a_stage() -> None:
    """What is kept for the way outside of the server is the server's, not the calibration's."""
    whole = EngineSettings(ServerConfig(calibration='paper', reserved_s=0.01)).device()
    assert (whole.bound, whole.reserved_ms) == ((3, 6, 5), 10.0)
    config = ServerConfig(calibration='paper', stage_concurrency=False)
    device = EngineSettings(config).device()
    assert device.bound == (1, 1, 1)
    assert device.table.rate(Stage.VIT, (0, 1, 1)) == whole.table.rate(Stage.VIT, (0, 1, 1))


def test_switches_of_the_server_reach_what_the_engine_makes(tmp_path: Path) -> None:
    batched = replace(load_calibration('paper'), batch_work=((1.0,), (1.0, 1.5), (1.0, 1.2, 1.3)))
    path = tmp_path / 'batched.json'
    save_calibration(batched, path)
    config = ServerConfig(calibration=str(path), max_robots=6)
    settings = EngineSettings(config)
    plan = settings.plan(settings.device())
    assert (plan.workers, plan.max_batch, plan.num_states) == ((3, 6, 5), (1, 2, 3), 10)
    alone = EngineSettings(replace(config, stage_concurrency=False, max_in_stages=2))
    plan = alone.plan(alone.device())
    assert (plan.workers, plan.max_batch, plan.num_states) == ((1, 1, 1), (1, 1, 1), 2)


@pytest.mark.parametrize('changes', [{}, {'round_barrier': True}, {'max_in_stages': 1}])
def test_scheduler_of_the_engine_has_the_switches(changes: dict[str, Any]) -> None:
    """Rounds, or a single state: a second request waits while the first is in ViT."""
    config = ServerConfig(calibration='paper', scheduling_policy='fifo')
    settings = EngineSettings(replace(config, **changes))
    device = settings.device()
    scheduler = settings.scheduler(settings.core(device), device)
    scheduler.submit(submit(1).request, 10)
    assert len(scheduler.dispatch(10)) == 1
    scheduler.submit(submit(2).request, 11)
    assert len(scheduler.dispatch(11)) == (0 if changes else 1)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'policy_settings': ('trys=3',)}, 'has no setting trys'),
        ({'unit_timeout_s': 0.1}, 'unit_timeout_s is 0.1, but a unit takes up to'),
        ({'decision_log': '/no/such/folder'}, 'there is no folder /no/such: make it first'),
        ({'decision_log': __file__}, 'which is no folder; name a folder'),
        ({'calibration': 'papr'}, 'no calibration papr'),
    ],
)
def test_what_can_be_known_before_a_start_is_refused_before_it(
    changes: dict[str, Any], words: str
) -> None:
    config = ServerConfig(calibration='paper')
    assert EngineSettings(config).checked().name == 'paper'
    with pytest.raises(ConfigError, match=words):
        EngineSettings(replace(config, **changes)).checked()


def test_policy_of_a_server_takes_settings() -> None:
    config = ServerConfig(
        calibration='paper',
        scheduling_policy='xinfer',
        policy_settings=('strict_gating=true', 'reserved_ms=7'),
        stage_overlap=False,
        max_in_stages=5,
    )
    settings = EngineSettings(config)
    assert settings.policy_changes(settings.device()) == {
        'strict_gating': True, 'reserved_ms': 7.0, 'stage_overlap': False, 'max_held': 5,
    }  # fmt: skip
    twice = EngineSettings(replace(config, policy_settings=('max_held=4',)))
    with pytest.raises(ConfigError, match='policy_settings has max_held; set max_in_stages'):
        twice.policy_changes(twice.device())
    wrong = EngineSettings(replace(config, policy_settings=('strict_gatin=true',)))
    with pytest.raises(ConfigError, match='xinfer has no setting strict_gatin; did you mean'):
        wrong.policy_changes(wrong.device())


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


class GatedModel:
    """
    A model whose stages wait until the test lets them go on.

    :param fails: the stage that raises
    """

    def __init__(self, fails: Stage | None = None) -> None:
        self.entered: queue.SimpleQueue[tuple[Stage, list[int]]] = queue.SimpleQueue()
        self.gates = {stage: threading.Semaphore(0) for stage in Stage}
        self._fails = fails

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        self.entered.put((stage, list(batch.slot_ids)))
        assert self.gates[stage].acquire(timeout=TIMEOUT_S)
        if stage is self._fails:
            raise RuntimeError('a secret of /home/someone')
        return {}


class RunningPipeline:
    """An engine's loop in a thread, with what it sends."""

    def __init__(self, model: Any) -> None:
        self.sent: queue.SimpleQueue[Record] = queue.SimpleQueue()
        scheduler = make_scheduler('foresight', ECHO.device())
        settings = LoopSettings(num_states=8)
        self.inbox = QueueInbox()
        self.pipeline = EngineLoop(
            scheduler, model, MonotonicClock(), self._take, settings, self.inbox
        )
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _take(self, record: Record) -> None:
        if not isinstance(record, Beat):
            self.sent.put(record)

    def _run(self) -> None:
        try:
            self.pipeline.run()
        except ModelError as error:
            self.error = error

    def wait_for_error(self) -> Exception | None:
        """Wait until the pipeline ends by itself."""
        self._thread.join(TIMEOUT_S)
        return self.error

    def close(self) -> None:
        """End the pipeline."""
        self.inbox.put(None)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()


def test_stages_of_different_requests_overlap() -> None:
    """While one request is in Prefill, the next is in ViT: there is no common round."""
    model = GatedModel()
    running = RunningPipeline(model)
    running.inbox.put(submit(1, 0))
    running.inbox.put(submit(2, 1))
    assert model.entered.get(timeout=TIMEOUT_S) == (Stage.VIT, [0])
    model.gates[Stage.VIT].release()
    both = {model.entered.get(timeout=TIMEOUT_S)[0] for _ in range(2)}
    assert both == {Stage.VIT, Stage.PREFILL}
    for gate in model.gates.values():
        gate.release(4)
    assert [running.sent.get(timeout=TIMEOUT_S).key for _ in range(2)] == [1, 2]  # type: ignore[union-attr]
    running.close()


def test_a_cancelled_request_leaves_at_the_next_boundary() -> None:
    model = GatedModel()
    running = RunningPipeline(model)
    running.inbox.put(submit(1, 0))
    assert model.entered.get(timeout=TIMEOUT_S) == (Stage.VIT, [0])
    running.inbox.put(Cancel(key=1))
    model.gates[Stage.VIT].release()
    assert running.sent.get(timeout=TIMEOUT_S) == Dropped(
        key=1, reason=Reason.SUPERSEDED, detail=''
    )
    assert model.entered.empty()
    running.close()


def test_a_failing_stage_is_an_answer_without_secrets_and_the_rest_goes_on() -> None:
    model = GatedModel(fails=Stage.PREFILL)
    running = RunningPipeline(model)
    for gate in model.gates.values():
        gate.release(10)
    running.inbox.put(submit(1))
    dropped = running.sent.get(timeout=TIMEOUT_S)
    assert isinstance(dropped, Dropped)
    assert (dropped.key, dropped.reason) == (1, Reason.MODEL_FAILED)
    assert 'secret' not in dropped.detail
    running.inbox.put(submit(2))
    assert running.sent.get(timeout=TIMEOUT_S).key == 2  # type: ignore[union-attr]
    running.close()


def test_an_engine_whose_every_unit_fails_ends(caplog: pytest.LogCaptureFixture) -> None:
    """A poisoned device is cured by ending the process; the log says why, the robots do not."""
    model = GatedModel(fails=Stage.VIT)
    running = RunningPipeline(model)
    model.gates[Stage.VIT].release(10)
    for key in range(1, 6):
        running.inbox.put(submit(key))
    assert '5 units of VIT in a row have failed' in str(running.wait_for_error())
    assert 'a secret of /home/someone' in caplog.text


def test_a_request_that_nobody_waits_for_any_more_is_dropped() -> None:
    model = GatedModel()
    running = RunningPipeline(model)
    running.inbox.put(submit(1, 0))
    model.entered.get(timeout=TIMEOUT_S)
    old = Request(key=2, robot=1, slot=1, arrival_ns=0, budget_ns=1, reserved_ns=0, period_ns=1)
    running.inbox.put(Submit(request=old))
    dropped = running.sent.get(timeout=TIMEOUT_S)
    assert isinstance(dropped, Dropped)
    assert (dropped.key, dropped.reason) == (2, Reason.EXPIRED)
    for gate in model.gates.values():
        gate.release(4)
    running.close()


def test_the_pipeline_computes_what_the_model_computes() -> None:
    contract = echo_contract()
    memory = memoryview(bytearray(slot_memory_bytes(contract, 2)))
    slots = slot_arrays(contract, 2, memory)
    model = EchoModel(contract)
    model.bind(slots, LanePlan(num_states=2))
    slots.state[1] = 2.5
    running = RunningPipeline(model)
    running.inbox.put(submit(1, 1))
    assert isinstance(running.sent.get(timeout=TIMEOUT_S), Done)
    assert slots.actions[1, 0, 0] == 2.5
    running.close()


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
