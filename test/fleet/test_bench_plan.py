# SPDX-License-Identifier: Apache-2.0
"""What a benchmark does with each fleet."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.sim.workload import make_workload

PLAN = BenchPlan(
    robots=(5,),
    seeds=(1,),
    period_ns=180_000_000,
    workload=make_workload('alternating'),
    warm_up_s=1.0,
    duration_s=2.0,
    episodes=('one', 'two'),
    keeps_pace=True,
    robots_per_process=2,
)


def test_equal_seeds_give_equal_loads(tmp_path: Path) -> None:
    first, second, other = (
        PLAN.load(5, seed, instance=7, episode=1, images='jpeg', folder=tmp_path)
        for seed in (1, 1, 2)
    )
    assert first == second != other
    assert [load.robots for load in first] == [(0,), (1, 2), (3, 4)]
    assert {budget for load in first for row in load.budgets_ns for budget in row} == {
        90_000_000,
        400_000_000,
    }
    assert len({load.log for load in first}) == 3
    assert first[0].duration_ns == 3_000_000_000


def test_no_budget_repeats_before_the_end(tmp_path: Path) -> None:
    (load, *_) = PLAN.load(5, 1, instance=7, episode=1, images='jpeg', folder=tmp_path)
    assert len(load.budgets_ns[0]) >= load.duration_ns / load.period_ns


@pytest.mark.parametrize(
    ('period_ms', 'given_ms', 'limit_ms'), [(180, None, 5.0), (20, None, 2.0), (20, 9.0, 9.0)]
)
def test_limit_of_lateness_follows_the_period(
    period_ms: int, given_ms: float | None, limit_ms: float
) -> None:
    plan = replace(PLAN, period_ns=period_ms * 1_000_000, max_lateness_ms=given_ms)
    assert plan.lateness_limit_ms == limit_ms


def test_workload_whose_robots_come_and_go_is_refused() -> None:
    with pytest.raises(ConfigError, match='bursty: robots join and leave'):
        replace(PLAN, workload=make_workload('bursty'))


def test_run_without_a_window_is_refused() -> None:
    with pytest.raises(ConfigError, match='a duration of 0 s'):
        replace(PLAN, duration_s=0.0)
