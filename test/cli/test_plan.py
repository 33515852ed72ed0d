# SPDX-License-Identifier: Apache-2.0
"""The command xinfer plan."""

import json
from pathlib import Path

import pytest

from .running import run


def test_plan_prints_a_row_a_deadline_and_writes_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'p.json', tmp_path / 'p.png'
    code = run(
        'plan', '--budgets', '90,400', '--execution-steps', '6,12', '--cache-tokens', '1000000',
        '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert 'Plan: foresight on paper, criterion paper' in out
    assert '12 × 30 = 360 ms' in out
    found = json.loads(numbers.read_text())
    assert [(r['deadline_ms'], r['period_ms']) for r in found['plan']] == [
        (90.0, 180.0), (400.0, 180.0), (90.0, 360.0), (400.0, 360.0),
    ]  # fmt: skip
    assert found['check'] == []
    assert {r['binds'] for r in found['plan']} <= {'VLA', 'brain', 'both'}
    assert picture.stat().st_size > 20_000


def test_workload_of_a_fleet_without_brains_is_planned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run('plan', '--no-brain', '--budgets', 'parcel', '--criterion', 'strict') == 0
    out = capsys.readouterr().out
    assert 'parcel' in out
    assert 'there is no brain' in out


def test_check_prints_planned_and_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        'plan', '--no-brain', '--budgets', '60', '--check', '--rounds', '1', '--warm-up', '2',
        '--end', '6', '--jobs', '1',
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert 'Planned and simulated' in out
    assert '60 ms with 4 robots' in out


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--budgets 90,x', 'workload 90,x is not known'),
        ('--budgets 0', 'response budgets must be more than 0'),
        ('--budgets bursty', 'workload bursty has bursts'),
        ('--policy all', 'a plan is for one scheduling policy'),
        ('--policy forsight', "scheduling policy 'forsight' is not known"),
        ('--criterion p50:100', 'asks for no deadlines'),
        ('--calibration nobody', 'no calibration nobody; shipped:'),
        ('--execution-steps 1,2,3,4,5', 'has 5 numbers; 4 at most'),
        ('--no-brain --cache-tokens 9', '--cache-tokens is of a brain'),
        ('--chunks-per-vla-call 3', 'give --calls-per-vla-call too'),
        ('--calls-per-vla-call 8.6 --brain-share 0.5', 'not allowed with argument'),
        ('--cache-tokens 1000', 'tokens for contexts; allowed: 28,000, a first prompt'),
        ('--brain none.json', 'brain none.json cannot be read'),
        ('--plot a.pdf', 'must end with .png'),
    ],
)
def test_mistake_ends_with_one_line(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('plan', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run('plan', '--help') == 0
    text = capsys.readouterr().out
    assert 'examples:' in text
    assert '--calls-per-vla-call 8.6' in text
