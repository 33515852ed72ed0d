# SPDX-License-Identifier: Apache-2.0
"""The command xinfer modes, on a shipped episode."""

import json
from pathlib import Path

import pytest

from .running import run


def test_modes_prints_a_table_writes_records_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'm.json', tmp_path / 'm.png'
    code = run(
        'modes', '--episodes', 'transfer_cube_0', '--delays-ms', '0,240', '--seeds', '1',
        '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    assert 'Execution modes: 1 episodes × 1 seeds, delay ± 20 %, deviation 20 mrad' in printed
    assert 'Largest step of the recordings: 51 mrad' in ' '.join(printed.split())
    records = json.loads(numbers.read_text())['modes']
    assert [(each['mode'], each['delay_ms']) for each in records] == [
        (mode, delay) for mode in ('rtc', 'async', 'sync', 'ensemble') for delay in (0, 240)
    ]
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--modes rtc,turbo', "execution mode 'turbo' is not known; known: rtc, async, sync"),
        ('--delays-ms 0,-5', 'a whole number from 0 to 10000'),
        ('--spread 2', 'a number from 0 to 1'),
        ('--deviation soft', 'a number from 0 to 1'),
        ('--episodes nosuch', "episode 'nosuch'"),
        ('--json a.txt', 'must end with .json'),
    ],
)
def test_mistake_ends_with_one_line_and_runs_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('modes', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error
