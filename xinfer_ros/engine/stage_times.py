# SPDX-License-Identifier: Apache-2.0
"""How long each stage takes by itself, for batches of several sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate import LoadBench
from xinfer_ros.engine.calibrate_lanes import ModelLanes
from xinfer_ros.engine.calibrate_plan import Load, LoadPlan
from xinfer_ros.models.machine import use_threads
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.registry import make_model


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """
    Times of a stage with nothing beside it.

    :param batch: requests in a unit
    :param ms: lower quartile, median and upper quartile of a unit [ms]
    """

    stage: Stage
    batch: int
    ms: tuple[float, float, float]


def stage_times(
    config: ServerConfig,
    batches: Sequence[int],
    rounds: int,
    clock: Clock,
    done: Callable[[], None] = lambda: None,
) -> list[StageTime]:
    """
    Measure a model's stages one after the other, each size in turn, in many short runs.

    :param config: of a server: model, device, types, threads
    :param batches: sizes
    :param rounds: short runs of each
    :param done: called after each run
    """
    model = make_model(config.model, ModelOptions.from_config(config))
    use_threads(config.torch_threads)
    most = max(batches)
    plan = LoadPlan.of(model.contract.stages, (1, 1, 1), (most, most, most))
    lanes = ModelLanes(model, plan, clock)
    bench = LoadBench(lanes, clock, plan)
    found: dict[tuple[Stage, int], list[float]] = {}
    try:
        for _ in range(rounds):
            for stage in plan.stages:
                for batch in batches:
                    vit, prefill, action = (int(other is stage) for other in Stage)
                    run = bench.run(Load(counts=(vit, prefill, action), batch=batch))
                    found.setdefault((stage, batch), []).extend(run.spans[stage].inner_ms)
                    done()
    finally:
        lanes.close()
    return [
        StageTime(stage=stage, batch=batch, ms=_quartiles(times))
        for (stage, batch), times in sorted(found.items())
    ]


def _quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = np.percentile(times, (25, 50, 75))
    return float(low), float(middle), float(high)
