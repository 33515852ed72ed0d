# SPDX-License-Identifier: Apache-2.0
"""Runs of the brain tier are measured, put side by side, and held against the bars."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.brain.scenario import DISTURBANCES, steady
from xinfer_ros.brain.simulation import SimulationLog, TurnRecord
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.brain_plots import controllers_plot, run_plot
from xinfer_ros.fleet.brain_records import record_of, records_of
from xinfer_ros.fleet.brain_runs import (
    BrainTask,
    TraceCache,
    measured,
    onset_of,
    recovery_of,
    rule_of,
    scenario_of,
    simulate,
    turns_of,
)
from xinfer_ros.fleet.brain_table import (
    Bars,
    bars_table,
    records_table,
    scenarios_of,
)

from .brain_figures import run_of, runs


def log_of(turns: list[tuple[float, bool]]) -> SimulationLog:
    return SimulationLog(
        turns=[TurnRecord(round(at * 1e9), 0, 1, 10, 10, hit, 0) for at, hit in turns]
    )


def test_onset_is_the_first_window_with_few_hits() -> None:
    log = log_of([(float(second), second < 300) for second in range(600)])
    onset = onset_of(log, 600.0)
    assert onset is not None
    assert 200 <= onset <= 215


def test_run_that_does_not_thrash_has_no_onset() -> None:
    assert onset_of(log_of([(float(second), True) for second in range(600)]), 600.0) is None
    assert onset_of(SimulationLog(), 600.0) is None


def test_fairness_is_measured_from_when_all_robots_are_there() -> None:
    """Those that joined late counted as starved, and so did those that never were to join."""
    late = replace(DISTURBANCES['robots'], robots=1, ramp_s=0.0, duration_s=1800.0)
    late = replace(late, changes=(replace(late.changes[0], robots=2),))
    turns = [(second, robot) for second in range(1800) for robot in range(1 + (second >= 600))]
    log = SimulationLog(
        turns=[TurnRecord(second * 10**9, robot, 1, 10, 10, True, 0) for second, robot in turns]
    )
    assert turns_of(log, late) == [1200.0, 1200.0]
    assert turns_of(SimulationLog(), replace(late, duration_s=300.0)) == [0.0]


def test_recovery_is_the_first_minute_at_the_level() -> None:
    run = run_of(BrainTask(controller='open', scenario=DISTURBANCES['capacity'], seed=1), 2.0)
    assert recovery_of(run, 600.0, 1.8) == 60.0
    assert recovery_of(run, 600.0, 1.2) == 30.0
    assert recovery_of(run, 600.0, 3.0) is None


def test_bars_hold_for_good_figures_and_not_for_bad_ones() -> None:
    good, bad = (Bars(records_of(runs(default))).all() for default in (2.45, 1.9))
    assert all(bar.holds for bar in good)
    assert sum(not bar.holds for bar in bad) >= 5
    unfair = [replace(run, jain=0.9) for run in runs()]
    (found,) = (bar for bar in Bars(records_of(unfair)).all() if not bar.holds)
    assert 'Jain' in found.name
    assert 'NO' in bars_table(bad).markdown()


def test_records_are_of_a_controller_a_fleet_and_a_scenario() -> None:
    records = records_of(runs())
    assert len({(r.controller, r.robots, r.scenario) for r in records}) == len(records)
    assert all(record.runs == 2 for record in records)
    groups = scenarios_of(records)
    assert [(g[0].scenario, g[0].robots) for g in groups[:4]] == [
        ('steady', 20), ('steady', 28), ('steady', 32), ('steady', 48),
    ]  # fmt: skip
    assert 'working_set' in records_table(groups[0]).markdown()


def test_censored_onset_is_told_as_such() -> None:
    task = BrainTask(controller='static:20', scenario=steady(32), seed=1)
    one, other = run_of(task, 2.4), run_of(replace(task, seed=2), 0.5)
    assert (record_of([one, one, other], None).onset_s, record_of([one], None).thrashed) == (
        None, 0,
    )  # fmt: skip
    assert record_of([one, other], None).onset_s == 120.0  # not between it and never
    record = record_of([one, other, other], None)
    assert (record.onset_s, record.thrashed, record.recovery_s) == (120.0, 2, None)


@pytest.mark.parametrize('name', ['statics', 'static:0', 'static:x', 'open:3', 'working'])
def test_unknown_controller_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(ConfigError, match=f"controller '{name}' is not known; "):
        rule_of(name)


def test_unknown_scenario_is_refused() -> None:
    with pytest.raises(ConfigError, match="scenario 'capacty' is not known; did you mean capac"):
        scenario_of('capacty', None, 30.0)


def test_pictures_are_drawn(tmp_path: Path) -> None:
    scenario = replace(DISTURBANCES['capacity'], duration_s=120.0)
    task = BrainTask(controller='working_set', scenario=scenario, seed=1)
    log = simulate(task, TraceCache())
    assert measured(task, log).rps > 0.5
    run_plot(tmp_path / 'run.png', task, log)
    controllers_plot(tmp_path / 'all.png', scenarios_of(records_of(runs())))
    for name in ('run.png', 'all.png'):
        assert (tmp_path / name).stat().st_size > 20_000
