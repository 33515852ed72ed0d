# SPDX-License-Identifier: Apache-2.0
"""An engine's loop in a thread, a model that waits for the test, and a request for them."""

import queue
import threading
import time
from typing import Any

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.inbox import QueueInbox
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.records import Beat, Record, Submit
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ModelError, Rejected
from xinfer_ros.sched.registry import make_scheduler

ECHO = EngineSettings(ServerConfig(model='echo', max_robots=1))
TIMEOUT_S = 30.0


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
