# SPDX-License-Identifier: Apache-2.0
"""Both tiers side by side: the smaller one binds, in tables, pictures and checks."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import PAPER
from xinfer_ros.fleet.plan import (
    MAX_BUDGETS,
    BrainUse,
    ExecutionHorizon,
    FleetPlan,
    budgets_of,
    constant,
    horizons_of,
)
from xinfer_ros.fleet.plan_brain import BrainTier
from xinfer_ros.fleet.plan_brain_file import Brain
from xinfer_ros.fleet.plan_check import (
    BrainCheck,
    CheckRecord,
    VlaCheck,
    check_brain,
    check_vla,
    three_of,
)
from xinfer_ros.fleet.plan_plot import plan_plot
from xinfer_ros.fleet.plan_report import check_table, plan_table
from xinfer_ros.fleet.plan_vla import BudgetMix, VlaTier
from xinfer_ros.fleet.rounds import run_round
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.scenario import Round

DEVICE = load_calibration('paper')
SETTINGS = policy_settings('foresight', DEVICE)
HORIZON = ExecutionHorizon(steps=6, spacing_ms=30.0)


@pytest.fixture(scope='module')
def brain() -> BrainTier:
    return BrainTier(Brain(), 60)


def plan(brain: BrainTier | None, use: BrainUse | None = None) -> FleetPlan:
    return FleetPlan(VlaTier(SETTINGS, DEVICE, PAPER), brain, use or BrainUse())


def test_tier_that_holds_fewer_binds(brain: BrainTier) -> None:
    tight, wide = (plan(brain).record(constant(ms), HORIZON) for ms in (90.0, 400.0))
    assert (tight.binds, tight.robots) == ('VLA', tight.vla_robots)
    assert (wide.binds, wide.robots) == ('brain', wide.brain_robots)
    assert wide.robots + wide.more == wide.vla_robots
    assert tight.brain_robots == tight.robots + tight.more


def test_robots_without_brains_are_bound_by_the_vla_tier() -> None:
    record = plan(None).record(constant(400.0), HORIZON)
    assert (record.binds, record.brain_robots, record.more) == ('VLA', None, 0)


def test_brain_with_a_vla_as_its_tool_leaves_the_vla_tier_idle(brain: BrainTier) -> None:
    use = BrainUse(calls_per_vla_call=8.6)
    record = plan(brain, use).record(constant(90.0), HORIZON)
    assert record.binds == 'brain'
    assert record.brain_calls_per_s is not None
    # each chunk waits for 8.6 calls of its own brain
    chunks_per_s = record.brain_calls_per_s / 8.6
    served = record.vla_per_s / chunks_per_s * brain.admitted
    assert record.vla_robots == pytest.approx(served, rel=0.01)


def test_long_vla_calls_come_near_robots_that_move_all_the_time(brain: BrainTier) -> None:
    use = BrainUse(calls_per_vla_call=8.6, chunks_per_vla_call=100_000)
    busy = plan(brain, use).record(constant(90.0), HORIZON).vla_robots
    assert busy == pytest.approx(plan(brain).record(constant(90.0), HORIZON).vla_robots, abs=1)


def test_workload_gets_a_row_and_each_of_its_budgets_one() -> None:
    mix = BudgetMix(name='parcel', cycles_ms=((90.0, 400.0),))
    assert [each.name for each in budgets_of(mix)] == ['parcel', '90 ms', '400 ms']
    many = BudgetMix(name='many', cycles_ms=(tuple(float(ms) for ms in range(50, 250)),))
    rows = budgets_of(many)
    assert len(rows) == MAX_BUDGETS + 1
    assert (rows[1].name, rows[-1].name) == ('50 ms', '249 ms')


def test_horizon_that_asks_too_often_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'2 steps of 0.1 ms: robots would ask every 0.2 ms'):
        horizons_of((2, 6), 0.1)


def test_table_says_what_binds_and_by_how_much(brain: BrainTier) -> None:
    joint = plan(brain)
    records = [joint.record(constant(ms), HORIZON) for ms in (20.0, 90.0, 400.0)]
    records.append(plan(None).record(constant(90.0), HORIZON))
    text = plan_table('T', records, 'N').markdown()
    assert 'not even one request is on time' in text
    assert 'the brain tier holds' in text
    assert 'the VLA tier holds' in text
    assert 'there is no brain' in text
    even = replace(records[1], brain_robots=records[1].robots, more=0, binds='both')
    assert 'neither has room' in plan_table('T', [even], '').markdown()


def test_picture_is_drawn(tmp_path: Path, brain: BrainTier) -> None:
    joint, horizons = plan(brain), horizons_of((6, 12), 30.0)
    mix = BudgetMix(name='parcel', cycles_ms=((90.0, 400.0),))
    records = [joint.record(each, h) for h in horizons for each in budgets_of(mix)]
    checks = [
        CheckRecord(what='x', point='p', planned=13, simulated=12, deadline_ms=90.0),
    ]
    plan_plot(tmp_path / 'p.png', 'T', joint, horizons, records, checks)
    assert (tmp_path / 'p.png').stat().st_size > 20_000


def test_three_points_are_the_least_the_middle_and_the_largest() -> None:
    assert three_of([400.0, 60.0, 90.0, 75.0, 120.0]) == [60.0, 90.0, 400.0]
    assert three_of([90.0, 90.0]) == [90.0]
    assert three_of([]) == []


def test_deadline_is_checked_by_a_search() -> None:
    check = VlaCheck(
        settings=SETTINGS, calibration=DEVICE, criterion=PAPER, seeds=(1,),
        round=Round(warm_up_s=2.0, end_s=8.0, period_ms=180.0),
    )  # fmt: skip
    told: list[int] = []
    (record,) = check_vla(
        check,
        {60.0: 9},
        lambda tasks: [run_round(task) for task in tasks],
        lambda deadline, robots, found, faults: told.append(robots),
    )
    assert (record.planned, record.deadline_ms) == (9, 60.0)
    assert 6 <= record.simulated <= 12  # so short a round forgives
    assert record.simulated in told


def test_cache_is_checked_by_a_fleet_twice_as_large() -> None:
    small = BrainCheck(brain=Brain(), share=0.3, seeds=(1,), minutes=5.0)
    episodes, calls = check_brain(small)
    assert episodes.error is not None
    assert calls.error is not None
    assert abs(episodes.error) < 0.3
    assert abs(calls.error) < 0.3
    assert 'episodes' in check_table([episodes, calls]).markdown()


def test_point_at_which_nothing_is_simulated_has_no_error() -> None:
    record = CheckRecord(what='VLA robots', point='20 ms', planned=1, simulated=0)
    assert record.error is None
    assert check_table([record]).rows == (('VLA robots', '20 ms', '1', '0', '–'),)
