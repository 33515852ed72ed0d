# SPDX-License-Identifier: Apache-2.0
"""The command xinfer audit, on a simulated round written down as a run."""

import json
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.predict.audit import audit
from xinfer_ros.predict.calibration import load_calibration, save_calibration
from xinfer_ros.predict.run_record import RecordedRun, RunFacts, save_run
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.scenario import Round, draw_scenario
from xinfer_ros.sim.simulation import simulate
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World

from .running import run


@pytest.fixture(scope='module')
def recorded() -> RecordedRun:
    """Return a round of a device that is a fifth slower than its calibration; a unit a request."""
    calibration = load_calibration('paper')
    scenario = draw_scenario(
        make_workload('alternating'), 12, calibration, seed=1, world=World(slowdown=1.2),
        round=Round(warm_up_s=0, end_s=6),
    )  # fmt: skip
    settings = policy_settings('xinfer', calibration)
    transitions = simulate(scenario, calibration, settings, keep_transitions=True).transitions
    units = np.unique(transitions[:, 1])
    return RecordedRun(
        transitions=transitions,
        members=np.stack([units, units, units % 12], axis=1),
        from_ns=int(transitions[0, 0]),
        calibration=calibration,
        facts=RunFacts(policy='xinfer', model='VLA-2B', date='2026-01-31'),
    )


@pytest.fixture
def run_file(recorded: RecordedRun, tmp_path: Path) -> Path:
    """Return the file of that round."""
    save_run(recorded, tmp_path / 'run.npz')
    return tmp_path / 'run.npz'


def test_audit_tells_the_errors_of_table_and_correction(
    recorded: RecordedRun, run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run('audit', run_file, '--json', tmp_path / 'a.json', '--plot', tmp_path / 'a.png')
    assert code == 0
    printed = capsys.readouterr().out
    assert 'VLA-2B under xinfer, 2026-01-31, 6 s, calibration paper' in printed
    assert 'left out: 0 units that failed' in printed
    found = json.loads((tmp_path / 'a.json').read_text())
    assert set(found) == {'table', 'corrected', 'left_out'}
    stages = ['VIT', 'PREFILL', 'ACTION', 'all']
    assert [each['stage'] for each in found['table']] == stages
    assert [each['stage'] for each in found['corrected']] == stages
    truth = audit(recorded.transitions, recorded.calibration)
    assert found['table'][-1]['mae_ms'] == pytest.approx(truth.mae_ms(), abs=1e-4)
    assert found['table'][-1]['requests'] == found['table'][-1]['units']
    # the device is slower than the table: too short, until the correction has learned it
    assert found['table'][-1]['bias_ms'] < -1.0
    assert abs(found['corrected'][-1]['bias_ms']) < abs(found['table'][-1]['bias_ms']) / 2
    assert found['left_out'][0]['early'] == 0
    assert (tmp_path / 'a.png').stat().st_size > 5_000


def test_audit_tries_another_calibration(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('audit', run_file, '--calibration', 'soft', '--json', tmp_path / 'a.json') == 0
    assert 'calibration soft of a made device' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('', 'the following arguments are required: RUN'),
        ('/no/such.npz', 'run /no/such.npz cannot be read: No such file'),
        ('{run} --json a.txt', 'must end with .json'),
        ('{run} --plot a.pdf', 'must end with .png'),
        ('{run} --learning-rate 0', 'above 0, up to 1'),
        ('{run} --calibration sofd', 'no calibration sofd; shipped:'),
        ('{other}', 'is not a recorded run; a server writes one with the setting record_run'),
        ('{empty}', 'holds no unit that was seen to start and to end'),
    ],
)
def test_mistake_ends_with_one_line(
    line: str, part: str, recorded: RecordedRun, run_file: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    other, empty = tmp_path / 'other.npz', tmp_path / 'empty.npz'
    save_calibration(load_calibration('tiny'), other)
    save_run(
        RecordedRun(
            transitions=recorded.transitions[:0],
            members=recorded.members[:0],
            from_ns=0,
            calibration=recorded.calibration,
            facts=recorded.facts,
        ),
        empty,
    )
    assert run('audit', *line.format(run=run_file, other=other, empty=empty).split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run('audit', '--help') == 0
    text = capsys.readouterr().out
    assert 'xinfer audit run.npz --json errors.json' in text
    assert 'default: None' not in text
