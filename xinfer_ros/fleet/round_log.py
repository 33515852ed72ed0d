# SPDX-License-Identifier: Apache-2.0
"""The decision log of a simulated round; an engine writes the same."""

from dataclasses import asdict
from pathlib import Path

from xinfer_ros.core.clock import today
from xinfer_ros.engine.decision_writer import DecisionWriter
from xinfer_ros.fleet.rounds import RoundTask
from xinfer_ros.sched.decision_log import LogHeader
from xinfer_ros.sched.log_files import log_files
from xinfer_ros.sched.native import native_core
from xinfer_ros.sim.simulation import simulate

MOST_BYTES = 1_000_000_000  # of all logs in the folder


def log_round(task: RoundTask, folder: Path) -> Path:
    """
    Simulate a round and write its decision log as a new run in a folder.

    :returns: the file
    :raises ConfigError: if it cannot be written
    """
    core = native_core(task.calibration, task.settings)
    scenario = task.scenario()
    header = LogHeader(
        policy=task.settings.name,
        settings=asdict(task.settings),
        calibration=task.calibration,
        model=task.calibration.model,
        date=today(),
        names={robot: f'robot_{robot}' for robot in range(scenario.num_robots)},
    )
    writer = DecisionWriter.into(folder, core, header, MOST_BYTES)
    simulate(scenario, task.calibration, task.settings, core=core)
    writer.close()
    return log_files(folder)[-1].path
