# SPDX-License-Identifier: Apache-2.0
"""The engine's loop: stages of different requests side by side, and what ends it."""

import queue
import threading

import pytest

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault
from xinfer_ros.engine.inbox import QueueInbox
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.records import Beat, Cancel, Done, Dropped, Record, Submit
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.sched.registry import make_scheduler

from .running_pipeline import ECHO, TIMEOUT_S, GatedModel, RunningPipeline, submit

FAILURE_S = 10.0


class FallingDevice:
    """A device that is lost in the Prefill of one request, then in the ViT of another."""

    def __init__(self) -> None:
        self.vit_runs, self.prefill_fails = threading.Event(), threading.Event()
        self.vit_fails, self.vit_failed = threading.Event(), threading.Event()

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        """Run a stage; slot 1 is the other request's."""
        if stage is Stage.PREFILL:
            assert self.prefill_fails.wait(FAILURE_S)
            raise RuntimeError('first')
        if batch.slot_ids == (1,):
            self.vit_runs.set()
            assert self.vit_fails.wait(FAILURE_S)
            raise RuntimeError('second')
        return {}

    def classify(self, error: Exception) -> Fault:
        """Return what an error says; the thread goes into the loop right after this."""
        if str(error) == 'second':
            self.vit_failed.set()
        return Fault.DEVICE_LOST


def test_first_failure_ends_the_engine_and_nothing_is_done_after_it() -> None:
    """Each of several lanes that fail together has its word, but the exit code tells the first."""
    device, inbox = FallingDevice(), QueueInbox()
    sent: queue.SimpleQueue[Record] = queue.SimpleQueue()

    def send(record: Record) -> None:
        if isinstance(record, Beat):
            return
        sent.put(record)
        device.vit_fails.set()  # while the first failure is dealt with
        assert device.vit_failed.wait(FAILURE_S)

    loop = EngineLoop(
        make_scheduler('fifo', ECHO.device()),
        device,
        MonotonicClock(),
        send,
        LoopSettings(num_states=4, classify=device.classify),
        inbox,
    )
    inbox.put(submit(0, 0))
    inbox.put(submit(1, 1))
    ended: list[EngineFailure] = []

    def run() -> None:
        with pytest.raises(EngineFailure) as failure:
            loop.run()
        ended.append(failure.value)

    thread = threading.Thread(target=run)
    thread.start()
    assert device.vit_runs.wait(FAILURE_S)
    device.prefill_fails.set()
    thread.join(FAILURE_S)
    loop.close()
    (failure,) = ended
    assert (failure.code, 'first' in str(failure)) == (ExitCode.DEVICE_LOST, True)
    detail = 'the device has failed; a new engine will start'
    assert sent.get_nowait() == Dropped(key=0, reason=Reason.DEVICE_FAILED, detail=detail)
    assert sent.empty()


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
