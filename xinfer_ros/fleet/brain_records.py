# SPDX-License-Identifier: Apache-2.0
"""Runs of the brain tier under one controller, as a flat record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median_low

from xinfer_ros.fleet.brain_runs import BrainRun, BrainTask, level_of, recovery_of

DROP_S, BACK_S = 600.0, 1200.0  # of scenario capacity
SETTLED_S = 300.0  # after the drop; from then on the best number's rate is the yardstick
RECOVERED, NEARLY = 0.9, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainRecord:
    """
    Runs of one controller and fleet in one scenario; means over the seeds.

    :param robots: size of the fleet at the start
    :param hits: share of the turns, first ones excepted, that found their whole context cached
    :param onset_s: median of when thrashing began, runs without it counted as later than all
        others; None if fewer than half did [s]
    :param thrashed: runs that did
    :param recovery_s: mean time from the loss of capacity to the first minute at 90 % of the best
        number's rate; None in other scenarios, or if a run did not recover [s]
    :param recovery_most_s: the longest of them [s]
    :param nearly_s: the mean time to 80 % [s]
    :param nearly_most_s: the longest of them [s]
    :param seed: of the first run; the others follow
    """

    controller: str
    robots: int
    scenario: str
    rps: float
    rps_least: float
    rps_most: float
    hits: float
    episodes_per_min: float
    jain: float
    jain_least: float
    onset_s: float | None
    thrashed: int
    parks: float
    recovery_s: float | None
    recovery_most_s: float | None
    nearly_s: float | None
    nearly_most_s: float | None
    seed: int
    runs: int


def record_of(runs: Sequence[BrainRun], level: float | None) -> BrainRecord:
    """
    Return the record of some runs that differ in their seed alone.

    :param level: what the best fixed number holds of the smaller cache, None if unknown [1/s]
    """
    task = runs[0].task
    onsets = [run.onset_s for run in runs]
    middle = median_low(math.inf if at is None else at for at in onsets)  # right-censored
    recovery = _recovery(runs, level, RECOVERED)
    nearly = _recovery(runs, level, NEARLY)
    return BrainRecord(
        controller=task.controller,
        robots=task.scenario.robots,
        scenario=task.scenario.name,
        rps=fmean(run.rps for run in runs),
        rps_least=min(run.rps for run in runs),
        rps_most=max(run.rps for run in runs),
        hits=fmean(run.hits for run in runs),
        episodes_per_min=fmean(run.episodes_per_min for run in runs),
        jain=fmean(run.jain for run in runs),
        jain_least=min(run.jain for run in runs),
        onset_s=None if math.isinf(middle) else middle,
        thrashed=sum(at is not None for at in onsets),
        parks=fmean(run.parks for run in runs),
        recovery_s=fmean(recovery) if recovery else None,
        recovery_most_s=max(recovery, default=None),
        nearly_s=fmean(nearly) if nearly else None,
        nearly_most_s=max(nearly, default=None),
        seed=min(run.task.seed for run in runs),
        runs=len(runs),
    )


def _recovery(runs: Sequence[BrainRun], level: float | None, share: float) -> list[float]:
    """Return when each run came back to a share of a rate, nothing if one did not [s]."""
    if level is None:
        return []
    times = [recovery_of(run, DROP_S, share * level) for run in runs]
    known = [time for time in times if time is not None]
    return known if len(known) == len(times) else []


def records_of(runs: Sequence[BrainRun]) -> list[BrainRecord]:
    """Return the records of all runs, by scenario, fleet and controller as they come."""
    cells: dict[BrainTask, list[BrainRun]] = {}
    for run in runs:
        key = BrainTask(controller=run.task.controller, scenario=run.task.scenario, seed=0)
        cells.setdefault(key, []).append(run)
    level = recovery_level(runs)
    return [
        record_of(found, level if key.scenario.name == 'capacity' else None)
        for key, found in cells.items()
    ]


def recovery_level(runs: Sequence[BrainRun]) -> float | None:
    """Return what the best fixed number holds of the smaller cache, None if none ran [1/s]."""
    by_number: dict[str, list[BrainRun]] = {}
    for run in runs:
        if run.task.scenario.name == 'capacity' and run.task.controller.startswith('static:'):
            by_number.setdefault(run.task.controller, []).append(run)
    rates = [level_of(found, DROP_S + SETTLED_S, BACK_S) for found in by_number.values()]
    return max(rates, default=None)
