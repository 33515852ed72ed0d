# SPDX-License-Identifier: Apache-2.0
"""The command xinfer compare."""

import json
from pathlib import Path

import pytest

from .running import run

SHORT = ('--rounds', '1', '--warm-up', '1', '--end', '4', '--jobs', '1', '--max-robots', '8')


def test_compare_prints_tables_writes_records_and_draws_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'a.json', tmp_path / 'a.png'
    code = run(
        'compare', '--policies', 'serial,xinfer', 'armory_edf:max_batch=3', '--workloads',
        'parcel,half-fast', *SHORT, '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    for part in ('parcel: 15 robots, device paper', 'half-fast: 10 robots', 'Capacity (ERC)'):
        assert part in printed
    records = json.loads(numbers.read_text())
    assert [(r['workload'], r['policy']) for r in records] == [
        (workload, policy)
        for workload in ('parcel', 'half-fast')
        for policy in ('serial', 'xinfer', 'armory_edf:max_batch=3')
    ]
    assert {'erc', 'attainment', 'goodput', 'starvation', 'fairness'} <= set(records[0])
    assert records[0]['fast_starvation'] is None
    assert records[3]['slow_starvation'] >= 0.0
    assert picture.stat().st_size > 5_000


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--policies serail', "scheduling policy 'serail' is not known"),
        ('--policies edf:lane=1', 'scheduling policy edf has no setting lane'),
        ('--policies edfo:lane_limits=1,1,1', "'edfo' is not known"),
        ('--workloads one-fats', 'workload one-fats is not known'),
        ('--robot-time-criterion starved:2', 'a share from 0 to 1 is needed'),
        ('--robot-time-calibration l40s', 'no calibration l40s; shipped:'),
        ('--json a.txt', 'must end with .json'),
    ],
)
def test_mistake_ends_with_one_line_and_simulates_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('compare', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error
