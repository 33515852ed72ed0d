# SPDX-License-Identifier: Apache-2.0
"""Policies compared on small arenas, as records, tables and a picture."""

from collections.abc import Callable
from pathlib import Path

import pytest

from xinfer_ros.fleet.compare import Arena, CompareRecord, Comparison, Contender
from xinfer_ros.fleet.compare_report import capacity_table, compare_plot, workload_table
from xinfer_ros.fleet.criterion import PAPER, parse_criterion
from xinfer_ros.fleet.rounds import RoundPool
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.robot_time import ROBOT_TIME, WORLD
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World

SHORT = Round(warm_up_s=1.0, end_s=5.0)


def _named(name: str) -> Contender:
    def settings(calibration: Calibration) -> PolicySettings:
        return policy_settings(name, calibration)

    return Contender(name=name, settings=settings)


@pytest.fixture(scope='module')
def records() -> list[CompareRecord]:
    arenas = [
        Arena(
            workload=make_workload('alternating'), calibration=load_calibration('paper'),
            world=World(), robots=12, criterion=PAPER, max_robots=16,
        ),
        Arena(
            workload=ROBOT_TIME['one-fast'], calibration=load_calibration('pi05_l40s'),
            world=WORLD, robots=10, criterion=parse_criterion('starved:0.05'), max_robots=10,
        ),
    ]  # fmt: skip
    counted: list[int] = []
    done: list[object] = []
    with RoundPool(1) as pool:
        comparison = Comparison(pool, SHORT, (1, 2), counted.append, done.append)
        found = comparison.run(arenas, [_named('serial'), _named('foresight')])
    assert len(done) == sum(counted) > 2 * 2 * 2
    return found


def _only(records: list[CompareRecord], wanted: Callable[[CompareRecord], bool]) -> CompareRecord:
    (found,) = filter(wanted, records)
    return found


def test_there_is_a_record_of_every_policy_on_every_workload(
    records: list[CompareRecord],
) -> None:
    assert [(r.workload, r.policy, r.robots, r.rounds) for r in records] == [
        ('alternating', 'serial', 12, 2), ('alternating', 'foresight', 12, 2),
        ('one-fast', 'serial', 10, 2), ('one-fast', 'foresight', 10, 2),
    ]  # fmt: skip


def test_one_request_after_the_other_serves_the_least(records: list[CompareRecord]) -> None:
    serial = _only(records, lambda r: (r.policy, r.workload) == ('serial', 'alternating'))
    ours = _only(records, lambda r: (r.policy, r.workload) == ('foresight', 'alternating'))
    assert 0 < serial.erc < ours.erc
    assert serial.first_failing == serial.erc + 1
    assert ours.attainment > 0.95 > serial.attainment >= serial.least_attainment
    assert serial.starvation > ours.starvation
    assert serial.fast_starvation is None


def test_robot_time_tells_tiers_and_mirrors(records: list[CompareRecord]) -> None:
    serial = _only(records, lambda r: (r.policy, r.workload) == ('serial', 'one-fast'))
    assert serial.fast_starvation is not None
    assert serial.slow_starvation is not None
    assert serial.fast_starvation > serial.starvation > serial.slow_starvation
    assert serial.mirror_error_steps is not None
    assert 0.0 < serial.mirror_error_steps < 0.5


def test_tables_hold_every_policy(records: list[CompareRecord]) -> None:
    rows = workload_table([r for r in records if r.workload == 'one-fast'])
    assert len(rows.rows) == 2
    assert len(rows.columns) == len(rows.rows[0])
    assert 'fast %' in rows.columns
    capacities = capacity_table(records)
    assert capacities.columns == ('policy', 'alternating', 'one-fast')
    assert capacities.rows[0][0] == 'foresight'


def test_picture_is_drawn(records: list[CompareRecord], tmp_path: Path) -> None:
    compare_plot(tmp_path / 'a.png', records)
    assert (tmp_path / 'a.png').stat().st_size > 5_000
