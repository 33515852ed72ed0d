# SPDX-License-Identifier: Apache-2.0
"""The engine process: torch, the scheduler and the lanes. Started by ``engine.link``."""

import logging
import mmap
import os
import queue
import signal
import socket
import sys
import threading
from pathlib import Path

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock, today
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.engine.calibrate_check import check_calibration
from xinfer_ros.engine.division import Division
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.pipeline import Event
from xinfer_ros.engine.records import (
    MAX_RECORD_BYTES,
    Contract,
    Ready,
    Record,
    decode,
    encode,
)
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.device_error import classify
from xinfer_ros.models.machine import is_cpu, use_threads_here
from xinfer_ros.models.registry import make_model, preload
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.run_record import RunFacts, RunRecorder

END_S = 2.0

log = logging.getLogger(__name__)


def serve(settings: EngineSettings, link: socket.socket) -> None:
    """
    Load the model, announce its contract, warm up and serve until the front end goes away.

    :param link: SOCK_SEQPACKET connection to the front end
    """
    events = _listen(link)  # before the model: a front end that goes away ends this at any time
    device = settings.device()
    plan = settings.plan(device)
    scheduler = settings.scheduler(device)
    model = make_model(settings.config.model, settings.options())
    if warning := check_calibration(settings.config, device, model.contract):
        log.warning('%s', warning)
    size = slot_memory_bytes(model.contract, settings.num_slots)
    memory_fd = os.memfd_create('xinfer-slots')
    os.ftruncate(memory_fd, size)
    memory = mmap.mmap(memory_fd, size)
    contract = Contract(model=model.contract, num_slots=settings.num_slots)
    socket.send_fds(link, [encode(contract)], [memory_fd])
    os.close(memory_fd)
    model.bind(slot_arrays(model.contract, settings.num_slots, memoryview(memory)), plan)
    model.warm_up()

    sending = threading.Lock()

    def send(record: Record) -> None:
        with sending:
            link.send(encode(record))

    division = Division.of(
        settings.context_share(device),
        on_cpu=is_cpu(settings.config.device),
        cores=len(os.sched_getaffinity(0)),
    )
    if division.words:
        log.info('%s', division.words)
    recorder = _recorder(settings.config, device, model.contract)
    lanes = LoopSettings(
        num_states=plan.num_states,
        workers=plan.workers,
        stages=model.contract.stages,
        unit_timeout_ns=round(settings.config.unit_timeout_s * 1e9),
        classify=lambda error: Fault(classify(error)),
        begin=division.beginner(use_threads_here),
        recorder=recorder,
    )
    loop = EngineLoop(scheduler, model, MonotonicClock(), send, lanes, events)
    send(Ready())
    try:
        loop.run()
    finally:
        if recorder is not None:
            _save(recorder, Path(settings.config.record_run))
    loop.close()


def _listen(link: socket.socket) -> 'queue.SimpleQueue[Event | None]':
    """Return where the front end's records arrive; None, and soon the end, when it is gone."""
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def receive() -> None:
        try:
            while packet := link.recv(MAX_RECORD_BYTES):
                events.put(decode(packet))
        finally:
            events.put(None)
            threading.Timer(END_S, os._exit, [0]).start()  # the model or a lane may hang

    threading.Thread(target=receive, name='receive', daemon=True).start()
    return events


def _save(recorder: RunRecorder, path: Path) -> None:
    try:
        recorder.save(path)
    except ConfigError as error:  # why the engine ends matters more
        log.error('the record of the run is lost: %s', error)


def _recorder(
    config: ServerConfig, device: Calibration, contract: ModelContract
) -> RunRecorder | None:
    if not config.record_run:
        return None
    facts = RunFacts(policy=config.scheduling_policy, model=contract.name, date=today())
    return RunRecorder(device, facts)


def _import_idly(model: str) -> None:
    """Import what the model needs in a thread that yields to everything else on this machine."""

    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # of this thread alone
        preload(model)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def main() -> None:
    """Run the engine process: ``python -m xinfer_ros.engine.process FD SETTINGS now|idle``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the front end, whose end ends this
    logging.basicConfig(format='[engine] %(levelname)s: %(message)s', level=logging.INFO)
    fd, text, haste = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    link = socket.socket(fileno=fd)
    try:
        settings = EngineSettings.from_json(text)
        if haste == 'idle':
            _import_idly(settings.config.model)
        if not link.recv(MAX_RECORD_BYTES):  # Start, or the end of the front end
            return
        serve(settings, link)
    except (BrokenPipeError, ConnectionResetError):
        log.info('the front end is gone')
    except ConfigError as error:
        log.error('%s', error)
        os._exit(ExitCode.REFUSED)
    except EngineFailure as failure:
        log.error('the engine process ends: %s', failure)
        os._exit(failure.code)
    except Exception:
        log.exception('the engine process ends')
        os._exit(ExitCode.FAILED)
    os._exit(ExitCode.OK)  # lanes may be inside a kernel: nothing here needs an orderly end


if __name__ == '__main__':
    main()
