# SPDX-License-Identifier: Apache-2.0
"""A calibration from beginning to end: the lanes, the fit, the server around them, the result."""

import gc
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import ByStage
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.engine.calibrate import measure
from xinfer_ros.engine.calibrate_check import served_identity
from xinfer_ros.engine.calibrate_lanes import ModelLanes
from xinfer_ros.engine.calibrate_plan import LoadPlan
from xinfer_ros.engine.calibrate_server import ServerShare, measure_server
from xinfer_ros.models.machine import is_cpu, release_memory, torch_version, use_threads
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.registry import make_model
from xinfer_ros.predict.calibration import Calibration, save_calibration
from xinfer_ros.predict.calibration_entries import FitError
from xinfer_ros.predict.fit import Fit, fit
from xinfer_ros.predict.identity import Identity

WORKERS_ON_CPU: ByStage = (1, 1, 1)
WORKERS_ON_GPU: ByStage = (2, 2, 3)
_PATIENCE_S = 600.0  # what a large model takes is to be found out
_DIGITS = 4  # of times in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPlan:
    """
    What is to be calibrated, and how thoroughly.

    :param config: of the server that it is for: model, device, types, threads
    :param workers: largest number of units at once of each stage; None: what suits the device
    :param batches: largest batch of each stage
    :param rounds: short runs of each load
    :param requests: requests that a server is asked
    :param seed: of the order of runs
    :param date: today
    """

    config: ServerConfig
    workers: ByStage | None
    batches: ByStage
    rounds: int
    requests: int
    seed: int
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """
    A calibration, and the fit that it comes from.

    :param stages: names of the stages that the model has
    """

    calibration: Calibration
    fit: Fit
    stages: tuple[str, ...]


class Steps(Protocol):
    """Who is told how far a calibration is."""

    def starting(self, count: int) -> None:
        """Take in that so many more runs and requests are to come."""
        ...

    def done(self) -> None:
        """Take in that one more is done."""
        ...


def calibrate(plan: CalibrationPlan, clock: Clock, steps: Steps) -> Calibrated:
    """
    Measure a model on the device of this machine.

    :param clock: the steady clock
    :raises ConfigError: if the model cannot be made
    :raises ModelError: if a stage fails, or the server does not start
    """
    found, identity, contract = _measure_lanes(plan, clock, steps)
    gc.collect()  # of the model, which the server will load once more
    release_memory()
    draft = _calibration(plan, found, identity, ServerShare(front_end_ms=0.0, output_ms=0.0))
    share = _measure_server(plan, draft, contract, clock, steps.done)
    return Calibrated(
        calibration=_calibration(plan, found, identity, share),
        fit=found,
        stages=tuple(stage.name for stage in contract.stages),
    )


def _measure_lanes(
    plan: CalibrationPlan, clock: Clock, steps: Steps
) -> tuple[Fit, Identity, ModelContract]:
    config = plan.config
    model = make_model(config.model, ModelOptions.from_config(config))
    contract = model.contract
    use_threads(config.torch_threads)
    suiting = WORKERS_ON_CPU if is_cpu(config.device) else WORKERS_ON_GPU
    loads = LoadPlan.of(contract.stages, plan.workers or suiting, plan.batches)
    steps.starting(plan.rounds * loads.runs_of_a_round + plan.requests)
    lanes = ModelLanes(model, loads, clock)
    try:
        measured = measure(lanes, clock, loads, plan.rounds, plan.seed, steps.done)
    finally:
        lanes.close()
    return fit(measured), served_identity(config, contract), contract


def _measure_server(
    plan: CalibrationPlan,
    draft: Calibration,
    contract: ModelContract,
    clock: Clock,
    done: Callable[[], None],
) -> ServerShare:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'lanes.json'
        save_calibration(draft, path)
        config = replace(
            plan.config,
            calibration=str(path),
            calibration_mismatch='warn',
            scheduling_policy='fifo',
            admission='none',
            max_robots=1,
            engine_start_timeout_s=_PATIENCE_S,
            unit_timeout_s=_PATIENCE_S,
            spare_engine=False,
        )
        return measure_server(config, contract, clock, plan.requests, done)


def _calibration(
    plan: CalibrationPlan, found: Fit, identity: Identity, share: ServerShare
) -> Calibration:
    vit, prefill, action = (round(ms, _DIGITS) for ms in found.work_ms)
    vit_launch, prefill_launch, action_launch = (round(ms, _DIGITS) for ms in found.overhead_ms)
    return Calibration(
        name=identity.model,
        device=identity.device,
        model=identity.model,
        model_facts=identity.model_facts,
        source=f'xinfer calibrate, {plan.rounds} rounds, Python {platform.python_version()}',
        torch=torch_version(),
        date=plan.date,
        work_ms=(vit, prefill, action),
        overhead_ms=(vit_launch, prefill_launch, action_launch),
        output_ms=round(share.output_ms, _DIGITS),
        front_end_ms=round(share.front_end_ms, _DIGITS),
        reserved_ms=plan.config.reserved_s * 1e3,
        rates=np.maximum(np.round(found.rates, _DIGITS), 10.0**-_DIGITS),
        batch_work=tuple(tuple(round(w, _DIGITS) for w in row) for row in found.batch_work),
        infer_ms=tuple(round(ms, _DIGITS) for ms in found.infer_ms),
        fit_error=_rounded(found.fit_error),
    )


def _rounded(error: FitError | None) -> FitError | None:
    if error is None:
        return None
    return FitError(median=round(error.median, _DIGITS), largest=round(error.largest, _DIGITS))
