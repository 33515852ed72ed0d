# SPDX-License-Identifier: Apache-2.0
"""
Measures this machine with a shipped model, and writes the calibration that the scheduler uses.

Run: ``.venv/bin/python benchmarks/measure_tiny_device.py``. Each stage runs on its lane alone,
beside each of the others, and beside both, in many short runs taken in turn. Every number is a
median over the quarter of the runs that other work on the machine has disturbed least. Then one
robot asks a real server.
"""

import argparse
import datetime
import itertools
import os
import platform
import queue
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import torch

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.clock import Clock, MonotonicClock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.engine_life import EngineLimits, EngineWatch
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.lane import Lane, UnitEnd
from xinfer_ros.engine.records import EngineSettings
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration
from xinfer_ros.engine.status import FrontEndSettings, ServerStatus
from xinfer_ros.errors import ModelError, Reason
from xinfer_ros.models.adapter import StagedModel, write_sample
from xinfer_ros.models.registry import make_model
from xinfer_ros.predict.calibration import Calibration, save_calibration

DATA = Path(__file__).parents[1] / 'xinfer_ros' / 'predict' / 'data'
UNITS = 10  # of each stage in one short run; each has its slot
COMMITMENT_STEPS = 6
RESERVED_MS = 4.0
REQUESTS = 300
SPACING_NS = 30_000_000
SUBSETS = [s for size in (1, 2, 3) for s in itertools.combinations(Stage, size)]
KEPT = 0.25  # share of the runs
Span = tuple[float, float]  # from issue to the end as the scheduler sees it, and of the stage [ms]
Run = dict[Stage, list[Span]]


class Bench:
    """A model on lanes, run closed-loop."""

    def __init__(self, model: StagedModel, clock: Clock) -> None:
        self._model, self._clock = model, clock
        num_slots = UNITS * len(Stage)
        memory = bytearray(slot_memory_bytes(model.contract, num_slots))
        slots = slot_arrays(model.contract, num_slots, memoryview(memory))
        model.bind(slots)
        model.warm_up()
        for slot in range(num_slots):
            write_sample(slots, slot, 'transfer the cube to the other arm')
            slots.leftover_steps[slot] = model.contract.horizon - COMMITMENT_STEPS
            slots.commitment_steps[slot] = COMMITMENT_STEPS
        self._ends: queue.SimpleQueue[UnitEnd] = queue.SimpleQueue()
        self._lanes = {stage: Lane(stage, model, clock, self._ends.put) for stage in Stage}

    def run(self, stages: Sequence[Stage]) -> Run:
        """Keep some lanes busy until one has run all of its units; return the spans of each."""
        todo = {stage: [UNITS * stage + i for i in range(UNITS)] for stage in stages}
        for stage in stages:
            for earlier in (other for other in Stage if other < stage):
                for slot in todo[stage]:
                    self._model.run(earlier, [slot])
        issued = {stage: self._issue(stage, todo[stage]) for stage in stages}
        spans: Run = {stage: [] for stage in stages}
        running = len(stages)
        while running:
            end = self._ends.get()
            seen_ns, stage = self._clock.now_ns(), end.unit.stage
            if end.error is not None:
                raise end.error
            running -= 1
            if all(todo.values()):
                whole, inner = seen_ns - issued[stage], end.ended_ns - end.started_ns
                spans[stage].append((whole / 1e6, inner / 1e6))
                issued[stage] = self._issue(stage, todo[stage])
                running += 1
        return spans

    def _issue(self, stage: Stage, slots: list[int]) -> int:
        slot = slots.pop()
        request = Request(
            key=1, robot=0, slot=slot, arrival_ns=0, budget_ns=1, reserved_ns=0, period_ns=1
        )
        now_ns = self._clock.now_ns()
        self._lanes[stage].issue(Unit(number=1, stage=stage, requests=(request,)))
        return now_ns


def undisturbed(runs: Sequence[Run]) -> Run:
    """Return the spans of the quickest runs of one combination, together."""

    def slowness(run: Run) -> float:
        return sum(_median(span[0] for span in spans) for spans in run.values())

    complete = [run for run in runs if all(run.values())]  # each lane has ended a unit
    kept = sorted(complete, key=slowness)[: max(round(KEPT * len(complete)), 1)]
    return {stage: [span for run in kept for span in run[stage]] for stage in kept[0]}


def fitted(runs: dict[tuple[Stage, ...], list[Run]], model: str) -> Calibration:
    """Return the calibration that explains the medians."""
    spans = {together: undisturbed(found) for together, found in runs.items()}
    work, overhead = [], []
    for stage in Stage:
        whole, inner = (_median(span[i] for span in spans[(stage,)][stage]) for i in (0, 1))
        work.append(inner)
        overhead.append(whole - inner)
    rates = np.ones((len(Stage), 2, 2, 2))
    for stage, *counts in itertools.product(Stage, (0, 1), (0, 1), (0, 1)):
        # a lane runs one unit at once: another unit of the stage itself is never beside it
        together = tuple(k for k in Stage if k is stage or counts[k])
        whole = _median(span[0] for span in spans[together][stage])
        rates[(stage, *counts)] = min(work[stage] / (whole - overhead[stage]), 1.0)
    return Calibration(
        name=model,
        device=f'{_cpu()}, {os.cpu_count()} cores',
        model=model,
        source=f'benchmarks/measure_tiny_device.py, {datetime.date.today()}, one CPU thread a '
        f'stage, torch {torch.__version__}, Python {platform.python_version()}',
        work_ms=(work[0], work[1], work[2]),
        overhead_ms=(overhead[0], overhead[1], overhead[2]),
        output_ms=0.5,
        front_end_ms=2.0,
        reserved_ms=RESERVED_MS,
        rates=rates,
    )


def measure_server(model: str, calibration: Path) -> list[ServerTimes]:
    """Return where the time went of requests that one robot has asked a real server."""
    config = ServerConfig(
        model=model, calibration=str(calibration), scheduling_policy='fifo', spare_engine=False
    )
    settings, clock = EngineSettings.from_config(config), MonotonicClock()
    watch = EngineWatch(settings, 1, EngineLimits.from_config(config), clock, print)
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    ready: queue.SimpleQueue[ServerStatus] = queue.SimpleQueue()
    front_end = FrontEnd(
        FrontEndSettings.from_config(config, 1, settings.device()), clock, watch,
        ThreadPoolExecutor(1), lambda robot, answer: answers.put(answer), ready.put,
    )  # fmt: skip
    times = []
    try:
        while not ready.get(timeout=config.engine_start_timeout_s).engine_pid:
            pass
        contract = make_model(model).contract
        registration = Registration(
            robot_id='r0', namespace='/r0', joint_names=contract.joint_names,
            cameras=tuple(camera.name for camera in contract.cameras),
            keyframe_spacing_ns=SPACING_NS, horizon=0, protocol_version=PROTOCOL_VERSION,
            instance=1,
        )  # fmt: skip
        robot, _, _ = front_end.register(registration)
        frames = _frames(contract)
        for number in range(1, REQUESTS + 1):
            front_end.submit(robot, _observation(robot.session, number, contract, frames),
                             clock.now_ns())  # fmt: skip
            answer = answers.get(timeout=10.0)
            if answer.reason is not Reason.OK:
                raise ModelError(f'{answer.reason.name}: {answer.detail}')
            times.append(answer.times)
    finally:
        front_end.close()
    return times


def _observation(
    session: int, number: int, contract: ModelContract, frames: tuple[CameraFrame, ...]
) -> Observation:
    leftover = np.zeros((contract.horizon - COMMITMENT_STEPS, contract.action_dim), np.float32)
    return Observation(
        session=session, episode=0, request_id=number, executed_steps=COMMITMENT_STEPS * number,
        instruction='transfer the cube to the other arm', joint_names=contract.joint_names,
        state=np.zeros(contract.action_dim, np.float32), images=frames, budget_ns=400_000_000,
        minimum_period_ns=180_000_000, commitment_steps=COMMITMENT_STEPS,
        keyframe_spacing_ns=SPACING_NS, leftover=leftover,
    )  # fmt: skip


def _frames(contract: ModelContract) -> tuple[CameraFrame, ...]:
    """Return JPEG pictures of the size and about the length of the shipped episodes'."""
    random = np.random.default_rng(1)
    frames = []
    for camera in contract.cameras:
        coarse = random.integers(0, 256, (14, 20, 3), dtype=np.uint8)
        picture = cv2.resize(coarse, (camera.width, camera.height), interpolation=cv2.INTER_CUBIC)
        data = cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, 65])[1].tobytes()
        frames.append(
            CameraFrame(
                name=camera.name, compressed=True, encoding='jpeg', height=0, width=0, step=0,
                is_bigendian=False, data=data,
            )
        )  # fmt: skip
    return tuple(frames)


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _cpu() -> str:
    for line in Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', choices=('tiny', 'echo'), default='tiny')
    parser.add_argument('--rounds', type=int, default=60, help='short runs of each combination')
    parser.add_argument('--output', type=Path, default=None, help='default: the shipped file')
    arguments = parser.parse_args()
    path = arguments.output or DATA / f'{arguments.model}_device.json'
    torch.set_num_threads(1)
    bench = Bench(make_model(arguments.model), MonotonicClock())
    runs: dict[tuple[Stage, ...], list[Run]] = {subset: [] for subset in SUBSETS}
    for _ in range(arguments.rounds):
        for subset in SUBSETS:
            runs[subset].append(bench.run(subset))
    calibration = fitted(runs, arguments.model)
    save_calibration(calibration, path)
    times = measure_server(arguments.model, path)
    decode = _median(t.decode_ns for t in times) / 1e6
    rest = _median(
        t.server_ns - t.decode_ns - t.queue_ns - t.vit_ns - t.prefill_ns - t.action_ns
        for t in times
    ) / 1e6  # fmt: skip
    # what is neither decoding nor waiting nor computing: a record there, a record back
    calibration = replace(calibration, front_end_ms=decode + rest / 2, output_ms=rest / 2)
    calibration = replace(
        calibration,
        work_ms=tuple(round(x, 4) for x in calibration.work_ms),
        overhead_ms=tuple(round(x, 4) for x in calibration.overhead_ms),
        output_ms=round(calibration.output_ms, 4),
        front_end_ms=round(calibration.front_end_ms, 4),
        rates=np.round(calibration.rates, 4),
    )
    save_calibration(calibration, path)
    print(path.read_text())


if __name__ == '__main__':
    main()
