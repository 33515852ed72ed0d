# SPDX-License-Identifier: Apache-2.0
"""The engine's loop when a lane's thread finds that the device is past help."""

import queue
import threading

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault
from xinfer_ros.engine.inbox import QueueInbox
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.records import Beat, Dropped, Record, Submit
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.sched.registry import make_scheduler

TIMEOUT_S = 10.0
ECHO = EngineSettings(ServerConfig(model='echo'))


class FallingDevice:
    """A device that is lost in the Prefill of one request, then in the ViT of another."""

    def __init__(self) -> None:
        self.vit_runs, self.prefill_fails = threading.Event(), threading.Event()
        self.vit_fails, self.vit_failed = threading.Event(), threading.Event()

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        """Run a stage; slot 1 is the other request's."""
        if stage is Stage.PREFILL:
            assert self.prefill_fails.wait(TIMEOUT_S)
            raise RuntimeError('first')
        if batch.slot_ids == (1,):
            self.vit_runs.set()
            assert self.vit_fails.wait(TIMEOUT_S)
            raise RuntimeError('second')
        return {}

    def classify(self, error: Exception) -> Fault:
        """Return what an error says; the thread goes into the loop right after this."""
        if str(error) == 'second':
            self.vit_failed.set()
        return Fault.DEVICE_LOST


def _submit(key: int) -> Submit:
    return Submit(
        request=Request(
            key=key, robot=key, slot=key, arrival_ns=MonotonicClock().now_ns(),
            budget_ns=10**10, reserved_ns=0, period_ns=10**9,
        )
    )  # fmt: skip


def test_first_failure_ends_the_engine_and_nothing_is_done_after_it() -> None:
    """Each of several lanes that fail together has its word, but the exit code tells the first."""
    device, inbox = FallingDevice(), QueueInbox()
    sent: queue.SimpleQueue[Record] = queue.SimpleQueue()

    def send(record: Record) -> None:
        if isinstance(record, Beat):
            return
        sent.put(record)
        device.vit_fails.set()  # while the first failure is dealt with
        assert device.vit_failed.wait(TIMEOUT_S)

    loop = EngineLoop(
        make_scheduler('fifo', ECHO.device()),
        device,
        MonotonicClock(),
        send,
        LoopSettings(num_states=4, classify=device.classify),
        inbox,
    )
    inbox.put(_submit(0))
    inbox.put(_submit(1))
    ended: list[EngineFailure] = []

    def run() -> None:
        with pytest.raises(EngineFailure) as failure:
            loop.run()
        ended.append(failure.value)

    thread = threading.Thread(target=run)
    thread.start()
    assert device.vit_runs.wait(TIMEOUT_S)
    device.prefill_fails.set()
    thread.join(TIMEOUT_S)
    loop.close()
    (failure,) = ended
    assert (failure.code, 'first' in str(failure)) == (ExitCode.DEVICE_LOST, True)
    detail = 'the device has failed; a new engine will start'
    assert sent.get_nowait() == Dropped(key=0, reason=Reason.DEVICE_FAILED, detail=detail)
    assert sent.empty()
