# SPDX-License-Identifier: Apache-2.0
"""Runs of the brain tier with made-up figures."""

from xinfer_ros.fleet.brain_runs import BrainRun, BrainTask
from xinfer_ros.fleet.brain_table import table_tasks

RATES = {
    'open': 0.6, 'static:12': 2.0, 'static:16': 2.3, 'static:20': 2.4, 'static:24': 2.1,
    'aimd_usage': 1.3, 'aimd_hits': 1.8, 'working_set': 2.45,
}  # fmt: skip


def run_of(task: BrainTask, rps: float) -> BrainRun:
    collapsed = [0.5 if 60 <= place < 66 else rps for place in range(180)]
    return BrainRun(
        task=task, rps=rps, hits=0.999, episodes_per_min=6.0, jain=0.99,
        onset_s=120.0 if rps < 1.0 else None, parks=3, rates=tuple(collapsed),
    )  # fmt: skip


def runs(default: float = 2.45) -> list[BrainRun]:
    rates = {**RATES, 'working_set': default}
    return [
        run_of(task, 2.4 if task.scenario.robots == 20 else rates.get(task.controller, 2.2))
        for group in table_tasks([1, 2])
        for task in group
    ]
