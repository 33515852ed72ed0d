# SPDX-License-Identifier: Apache-2.0
"""The command xinfer physical, on few and short episodes."""

import json
from pathlib import Path

import pytest

from .running import run


def test_physical_prints_a_table_writes_records_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'p.json', tmp_path / 'p.png'
    code = run(
        'physical', '--task', 'static', '--delays-ms', '0,200', '--commitment', '4',
        '--episodes', '1', '--limit', '4.5', '--jobs', '1', '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    assert 'Cube transfer, 1 episodes a point, moving at 40 mm/s' in capsys.readouterr().out
    points = json.loads(numbers.read_text())['points']
    assert [(each['commitment'], each['delay_ms'], each['success']) for each in points] == [
        ('4', 0, 1.0),
        ('4', 200, 1.0),
    ]
    assert points[0]['change'] == 0.0
    assert points[1]['change'] < 0.0
    assert points[1]['violated'] > 0.5  # ten rows are played, four are promised
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--task flying', "task 'flying' is not known; known: static, moving, or all"),
        ('--mode turbo', "execution mode 'turbo' is not known"),
        ('--commitment 4,soft', "--commitment 'soft': measured, or a whole number from 0 to 1000"),
        ('--limit 0', 'a number from 1 to 600'),
        ('--plot p.pdf', 'must end with .png'),
    ],
)
def test_mistake_ends_with_one_line_and_simulates_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('physical', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error
