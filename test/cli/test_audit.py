# SPDX-License-Identifier: Apache-2.0
"""The command xinfer audit, on the decision log of a simulated round."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from xinfer_ros.engine.decision_writer import DecisionWriter
from xinfer_ros.fleet.logged_run import recorded_run
from xinfer_ros.predict.audit import audit
from xinfer_ros.predict.calibration import load_calibration, save_calibration
from xinfer_ros.sched.decision_log import LogHeader
from xinfer_ros.sched.log_files import load_log
from xinfer_ros.sched.settings import policy_settings

from .running import run

ROUND = '--robots 12 --policy xinfer --rounds 1 --warm-up 0 --end 6 --world slowdown=1.2 --jobs 1'


@pytest.fixture(scope='module')
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a round of a device that is a fifth slower than its calibration."""
    folder = tmp_path_factory.mktemp('simulated') / 'log'
    assert run('sim', *ROUND.split(), '--decision-log', folder) == 0
    return folder


def test_audit_tells_the_errors_of_table_and_correction(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run('audit', log, '--json', tmp_path / 'a.json', '--plot', tmp_path / 'a.png')
    assert code == 0
    printed = capsys.readouterr().out
    assert 'VLA-2B under xinfer, ' in printed
    assert ', 6 s, calibration paper' in printed
    assert 'left out: 0 units that failed' in printed
    found = json.loads((tmp_path / 'a.json').read_text())
    assert set(found) == {'table', 'corrected', 'left_out'}
    stages = ['VIT', 'PREFILL', 'ACTION', 'all']
    assert [each['stage'] for each in found['table']] == stages
    assert [each['stage'] for each in found['corrected']] == stages
    recorded = recorded_run(load_log(log))
    truth = audit(recorded.transitions, recorded.calibration)
    assert found['table'][-1]['mae_ms'] == pytest.approx(truth.mae_ms(), abs=1e-4)
    assert 3 * found['table'][-1]['requests'] == found['table'][-1]['units']
    # the device is slower than the table: too short, until the correction has learned it
    assert found['table'][-1]['bias_ms'] < -1.0
    assert abs(found['corrected'][-1]['bias_ms']) < abs(found['table'][-1]['bias_ms']) / 2
    assert found['left_out'][0]['early'] == 0
    assert (tmp_path / 'a.png').stat().st_size > 5_000


def test_audit_tries_another_calibration(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('audit', log, '--calibration', 'soft', '--json', tmp_path / 'a.json') == 0
    assert 'calibration soft of a made device' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('', 'the following arguments are required: LOG'),
        ('/no/such', 'decision log /no/such cannot be read: No such file'),
        ('{log} --json a.txt', 'must end with .json'),
        ('{log} --plot a.pdf', 'must end with .png'),
        ('{log} --learning-rate 0', 'above 0, up to 1'),
        ('{log} --calibration sofd', 'no calibration sofd; shipped:'),
        ('{other}', 'it is no decision log; a server writes one with decision_log'),
        ('{empty}', 'holds no unit that was seen to start and to end'),
    ],
)
def test_mistake_ends_with_one_line(
    line: str, part: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, empty = tmp_path / 'other.json', tmp_path / 'empty'
    paper = load_calibration('paper')
    save_calibration(paper, other)
    header = LogHeader(
        policy='fifo', settings=asdict(policy_settings('fifo', paper)), calibration=paper,
        model='tiny', date='2026-01-31',
    )  # fmt: skip
    DecisionWriter.into(empty, header.core(), header, 1_000_000).close()
    assert run('audit', *line.format(log=log, other=other, empty=empty).split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run('audit', '--help') == 0
    text = capsys.readouterr().out
    assert 'xinfer audit decisions --json errors.json' in text
    assert 'default: None' not in text
