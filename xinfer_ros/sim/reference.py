# SPDX-License-Identifier: Apache-2.0
"""Simulates one round in Python, to be read: it says the same as the compiled kernel."""

import numpy as np
import numpy.typing as npt

from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.kernel import Kernel
from xinfer_ros.sim.robot_time_metrics import RowCounts
from xinfer_ros.sim.row_kernel import RowKernel
from xinfer_ros.sim.scenario import Scenario
from xinfer_ros.sim.simulation import SimulationResult


def simulate_reference(
    scenario: Scenario,
    calibration: Calibration,
    settings: PolicySettings,
    core: SchedulerCore | None = None,
    *,
    keep_transitions: bool = False,
    keep_decisions: bool = False,
) -> SimulationResult:
    """
    Simulate one round as ``simulate`` does, in Python.

    :param core: a fresh one that decides by these settings; the readable one by default
    """
    core = core or reference_core(calibration, settings)
    core.keep_log(keep_decisions)
    rows: RowCounts = np.zeros((0, 7))
    if scenario.rows is None:
        kernel = Kernel(scenario, calibration, settings, core)
        kernel.run()
    else:
        kernel = row_kernel = RowKernel(scenario, scenario.rows, calibration, settings, core)
        kernel.run()
        rows = row_kernel.counts()
    return SimulationResult(
        responses=_rows(kernel.responses),
        transitions=_rows(kernel.transitions if keep_transitions else []),
        decisions=list(core.take_decisions()),
        events=kernel.events,
        rows=rows,
    )


def _rows(rows: list[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, 5)
