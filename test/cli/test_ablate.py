# SPDX-License-Identifier: Apache-2.0
"""The command xinfer ablate, on real engines of the echo model."""

import json
from pathlib import Path

import pytest

from .running import run


def test_ablate_prints_stage_times_and_gains_writes_them_and_draws_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'a.json', tmp_path / 'a.png'
    code = run(
        'ablate', '--model', 'echo', '--variants', 'off,C+M+R+G', '--robots', '2', '--window',
        '0.1', '--rounds', '2', '--batches', '1,2', '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    for part in ('Stages of echo by themselves', 'PREFILL', 'answers/s', 'over off', 'C+M+R+G'):
        assert part in printed
    written = json.loads(numbers.read_text())
    assert [(time['stage'], time['batch']) for time in written['stage_times']] == [
        (stage, batch) for stage in range(3) for batch in (1, 2)
    ]
    assert [len(variant['per_s']) for variant in written['variants']] == [2, 2]
    assert picture.stat().st_size > 5_000


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--variants off,Q', "switch 'Q' of variant 'Q' is not known; C, M, R, G"),
        ('--policy fifoo', 'did you mean fifo?'),
        ('--model tinny', 'did you mean tiny?'),
        ('--batches 0', 'a whole number from 1 to 8'),
        ('--json a.txt', 'must end with .json'),
        ('--window 0', 'a time above 0 is needed'),
        ('--model ./nosuch', 'nosuch does not exist'),
    ],
)
def test_mistake_ends_with_one_line_and_measures_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('ablate', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error
