# SPDX-License-Identifier: Apache-2.0
"""Rounds of a simulated fleet, in this process and in others."""

from dataclasses import replace

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.explain import explanations
from xinfer_ros.fleet.round_plots import attainment_curves, latencies
from xinfer_ros.fleet.rounds import QUANTILES, RoundPool, RoundTask, run_round
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World


@pytest.fixture
def task() -> RoundTask:
    calibration = load_calibration('paper')
    return RoundTask(
        policy='xinfer',
        settings=policy_settings('xinfer', calibration),
        workload=make_workload('alternating'),
        robots=18,
        number=2,
        seed=7,
        calibration=calibration,
        world=World(),
        round=Round(warm_up_s=1.0, end_s=5.0),
        audited=True,
    )


def test_round_is_recorded_with_what_was_asked_for(task: RoundTask) -> None:
    record = run_round(task).record
    assert (record.policy, record.workload, record.robots) == ('xinfer', 'alternating', 18)
    assert (record.round, record.seed, record.calibration) == (2, 7, 'paper')
    assert 0.5 < record.attainment <= 1.0
    assert record.mae_ms is not None
    assert 0.0 < record.mae_ms < 10.0
    assert record.real_time_factor > 1.0


def test_audit_is_left_out_unless_asked_for(task: RoundTask) -> None:
    assert run_round(replace(task, audited=False)).record.mae_ms is None


def test_latencies_are_kept_by_budget_class(task: RoundTask) -> None:
    result = run_round(task)
    assert [curve.budget_ms for curve in result.curves] == [90.0, 400.0]
    for curve in result.curves:
        assert len(curve.quantiles_ms) == QUANTILES
        assert list(curve.quantiles_ms) == sorted(curve.quantiles_ms)
    assert len(latencies([result, result])) == 2
    (curve,) = attainment_curves([result.record])
    assert curve.points == {18: [100.0 * result.record.attainment]}


def test_workload_with_a_fleet_of_its_own_takes_the_number_asked_for(task: RoundTask) -> None:
    bursty = replace(task, workload=make_workload('bursty'), robots=3)
    assert 3 * 4 / 0.18 * 0.8 < run_round(bursty).record.responses < 3 * 4 / 0.18 * 1.1


def test_processes_give_the_same_rounds_in_the_order_of_the_tasks(task: RoundTask) -> None:
    tasks = [replace(task, seed=seed, audited=False) for seed in (1, 2, 3)]
    told = []
    with RoundPool(2) as pool:
        others = pool.run(tasks, told.append)
    here = [run_round(each) for each in tasks]

    def plain(results):
        return [replace(result.record, real_time_factor=0.0) for result in results]

    assert plain(others) == plain(here)
    assert sorted(result.record.seed for result in told) == [1, 2, 3]


def test_fault_of_a_round_in_another_process_reaches_the_user(task: RoundTask) -> None:
    short = replace(task, robots=1, round=Round(warm_up_s=1.999, end_s=2.0))
    with pytest.raises(ConfigError, match='choose a later end'), RoundPool(2) as pool:
        pool.run([short, short])


def test_round_too_large_for_memory_is_refused(task: RoundTask) -> None:
    with pytest.raises(ConfigError, match='take fewer robots, a shorter round or a longer period'):
        replace(task, robots=4096, round=Round(warm_up_s=1.0, end_s=3600.0, period_ms=10.0))


def test_decisions_are_told_from_the_time_asked_for(task: RoundTask) -> None:
    lines = explanations(task, 5, at_s=2.0)
    assert len(lines) == 5
    assert all(2000.0 <= float(line.split(' ms:')[0]) <= 5000.0 for line in lines)
    assert any(' waits: ' in line for line in lines)
    assert not any(line.endswith(' starts') for line in lines)


def test_decisions_begin_with_the_window(task: RoundTask) -> None:
    assert explanations(task, 3) == explanations(task, 3, at_s=1.0)


def test_decisions_after_the_end_are_refused(task: RoundTask) -> None:
    with pytest.raises(ConfigError, match='the round ends at 5 s'):
        explanations(task, 1, at_s=5.0)
