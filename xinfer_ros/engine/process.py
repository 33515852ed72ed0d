# SPDX-License-Identifier: Apache-2.0
"""The engine process: torch, the scheduler and the lanes. Started by ``engine.link``."""

import logging
import mmap
import os
import signal
import socket
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from xinfer_ros.core.clock import MonotonicClock, today
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.memory import settle
from xinfer_ros.core.repeats import set_up_log
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.thread_name import name_this_thread, start_thread
from xinfer_ros.engine.calibrate_check import check_calibration
from xinfer_ros.engine.codec import MAX_RECORD_BYTES, encode
from xinfer_ros.engine.decision_writer import DecisionWriter
from xinfer_ros.engine.division import Division
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault
from xinfer_ros.engine.inbox import LinkInbox, wait_for_hangup
from xinfer_ros.engine.loop import EngineLoop, LoopSettings
from xinfer_ros.engine.records import Contract, Ready, Record
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.device_error import classify
from xinfer_ros.models.machine import is_cpu, use_threads_here
from xinfer_ros.models.registry import make_model, preload
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.decision_log import LogHeader
from xinfer_ros.sched.native import NativeCore

END_S = 2.0

log = logging.getLogger(__name__)


def serve(settings: EngineSettings, link: socket.socket, notes: socket.socket) -> None:
    """
    Load the model, announce its contract, warm up and serve until the front end goes away.

    :param link: SOCK_SEQPACKET connection to the front end
    :param notes: another one, see ``LinkInbox``
    """
    start_thread('link', lambda: _end_with(link))  # whatever the model may be busy with
    device = settings.device()
    plan = settings.plan(device)
    core = settings.core(device)
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
    decision_log = _decision_log(settings, core, device, model.contract)
    lanes = LoopSettings(
        num_states=plan.num_states,
        workers=plan.workers,
        stages=model.contract.stages,
        unit_timeout_ns=round(settings.config.unit_timeout_s * 1e9),
        classify=lambda error: Fault(classify(error)),
        begin=division.beginner(use_threads_here),
        decision_log=decision_log,
    )
    scheduler = settings.scheduler(core, device)
    loop = EngineLoop(scheduler, model, MonotonicClock(), send, lanes, LinkInbox(link, notes))
    settle()
    send(Ready())
    try:
        loop.run()
    finally:
        if decision_log is not None:
            decision_log.close()
    loop.close()


def _end_with(link: socket.socket) -> None:
    """End the process soon after the front end is gone; the model or a lane may hang by then."""
    wait_for_hangup(link)
    threading.Timer(END_S, os._exit, [0]).start()


def _decision_log(
    settings: EngineSettings, core: NativeCore, device: Calibration, contract: ModelContract
) -> DecisionWriter | None:
    config = settings.config
    if not config.decision_log:
        return None
    header = LogHeader(
        policy=config.scheduling_policy,
        settings=asdict(settings.policy(device)),
        calibration=device,
        model=contract.name,
        date=today(),
    )
    most_bytes = config.decision_log_mb * 1_000_000
    return DecisionWriter.into(Path(config.decision_log), core, header, most_bytes)


def _import_idly(model: str) -> None:
    """Import what the model needs in a thread that yields to everything else on this machine."""

    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # of this thread alone
        preload(model)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def main() -> None:
    """Run the engine process: ``python -m xinfer_ros.engine.process FD FD SETTINGS now|idle``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the front end, whose end ends this
    name_this_thread('xinfer_engine')
    set_up_log('[engine] %(levelname)s: %(message)s')
    link, notes = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:3])
    text, haste = sys.argv[3:]
    try:
        settings = EngineSettings.from_json(text)
        if haste == 'idle':
            _import_idly(settings.config.model)
        if not link.recv(MAX_RECORD_BYTES):  # Start, or the end of the front end
            return
        serve(settings, link, notes)
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
