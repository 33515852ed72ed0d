# SPDX-License-Identifier: Apache-2.0
"""The search for settings: what it may change, when it ends, and what it recommends."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.fleet.compare import Arena
from xinfer_ros.fleet.criterion import PAPER
from xinfer_ros.fleet.rounds import RoundPool, RoundResult
from xinfer_ros.fleet.tune import FRESH, Tuner, TuneRecord, changed
from xinfer_ros.fleet.tune_report import server_yaml, tune_plot, tune_table
from xinfer_ros.fleet.tune_space import knobs
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.ros.params_file import resolve
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World

DEVICE = load_calibration('paper')
SERVER = '/fleet/xinfer_server'


class Bench:
    """A tuner whose clock moves by a second with each round."""

    def __init__(self, pool: RoundPool, *, robots: int | None) -> None:
        self.clock = SimulatedClock()
        self.seeds: list[int] = []
        self.told: list[str] = []
        arena = Arena(
            workload=make_workload('alternating'), calibration=DEVICE, world=World(), robots=1,
            criterion=PAPER, max_robots=16,
        )  # fmt: skip
        self.tuner = Tuner(
            pool, arena, robots=robots, round=Round(warm_up_s=1.0, end_s=6.0), seeds=(5, 6),
            clock=self.clock, starting=lambda count: None, done=self.done, tell=self.told.append,
        )  # fmt: skip

    def done(self, result: RoundResult) -> None:
        self.seeds.append(result.record.seed)
        self.clock.advance(1_000_000_000)


def _run(policy: str, minutes: float, robots: int | None = None) -> tuple[TuneRecord, Bench]:
    with RoundPool(1) as pool:
        bench = Bench(pool, robots=robots)
        ((record, _),) = bench.tuner.run([policy_settings(policy, DEVICE)], minutes)
    return record, bench


@pytest.mark.parametrize('policy', POLICIES)
def test_every_knob_is_a_setting_and_stays_in_range(policy: str) -> None:
    settings = policy_settings(policy, DEVICE)
    assert {knob.name for knob in knobs(policy)} <= {field.name for field in fields(settings)}
    for knob in knobs(policy):
        found = knob.neighbours(settings, DEVICE)
        assert found
        for other in found:
            (change,) = changed(settings, other)
            assert change.startswith(f'{knob.name}=')


def test_concurrency_limits_are_tuned() -> None:
    limits = {knob.name: knob for knob in knobs('edf')}
    edf = policy_settings('edf', DEVICE)
    found = [other.lane_limits for other in limits['lane_limits'].neighbours(edf, DEVICE)]
    assert found == [(2, 2, 3), (1, 1, 3), (1, 3, 3), (1, 2, 2), (1, 2, 4)]
    assert 0 < limits['max_held'].neighbours(edf, DEVICE)[0].max_held < 42


def test_given_fleet_is_served_better_and_judged_on_fresh_rounds() -> None:
    record, bench = _run('slack_gate', minutes=60.0, robots=16)
    assert record.robots == 16
    assert record.tried > 5
    assert bench.told
    assert {5, 6, 5 + FRESH, 6 + FRESH} == set(bench.seeds)
    assert record.changes


def test_search_goes_the_same_way_again() -> None:
    assert _run('edf', minutes=3.0)[0] == _run('edf', minutes=3.0)[0]


def test_search_without_time_leaves_the_defaults() -> None:
    record, bench = _run('edf', minutes=0.01)
    assert record.tried == 0
    assert record.changes == ()
    assert record.erc == record.erc_default
    assert bench.told == []


def test_policy_without_settings_is_only_judged() -> None:
    record, _ = _run('serial', minutes=60.0)
    assert (record.tried, record.changes) == (0, ())


def _record(*changes: str) -> TuneRecord:
    return TuneRecord(
        policy='edf', workload='parcel', calibration='paper', criterion='paper', changes=changes,
        erc_default=13, erc=15, robots=15, margin=0.01, attainment=0.96, goodput=70.0,
        starvation=0.01, fairness=0.999, tried=20, max_robots=32,
    )  # fmt: skip


def test_recommended_configuration_is_what_a_server_takes(tmp_path: Path) -> None:
    path = tmp_path / 'server.yaml'
    path.write_text(server_yaml(_record('lane_limits=2,2,4', 'max_held=6'), 'paper'))
    config = resolve(ServerConfig, SERVER, [path], {})
    assert (config.scheduling_policy, config.calibration) == ('edf', 'paper')
    assert config.policy_settings == ('lane_limits=2,2,4',)
    assert (config.max_in_stages, config.max_robots) == (6, 15)
    assert EngineSettings(config).policy_changes(DEVICE) == {
        'lane_limits': (2, 2, 4), 'max_held': 6, 'stage_overlap': True,
    }  # fmt: skip


@pytest.mark.parametrize('policy', POLICIES)
def test_server_reads_every_change_as_it_was_tuned(policy: str, tmp_path: Path) -> None:
    path, settings = tmp_path / 'server.yaml', policy_settings(policy, DEVICE)
    for knob in knobs(policy):
        for other in knob.neighbours(settings, DEVICE):
            record = replace(_record(*changed(settings, other)), policy=policy)
            path.write_text(server_yaml(record, 'paper'))
            config = resolve(ServerConfig, SERVER, [path], {})
            read = EngineSettings(config).policy_changes(DEVICE)
            assert read[knob.name] == pytest.approx(getattr(other, knob.name), rel=1e-5)


def test_configuration_without_changes_names_the_policy_alone(tmp_path: Path) -> None:
    path = tmp_path / 'server.yaml'
    path.write_text(server_yaml(_record(), "it's mine.json"))
    config = resolve(ServerConfig, SERVER, [path], {})
    assert config.policy_settings == ()
    assert config.calibration == "it's mine.json"


def test_table_and_picture_hold_every_policy(tmp_path: Path) -> None:
    table = tune_table([_record('max_held=6'), _record()])
    assert [row[-1] for row in table.rows] == ['max_held=6', '–']
    assert len(table.columns) == len(table.rows[0])
    tune_plot(tmp_path / 'a.png', [_record('max_held=6'), _record()])
    assert (tmp_path / 'a.png').stat().st_size > 5_000
