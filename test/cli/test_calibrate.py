# SPDX-License-Identifier: Apache-2.0
"""The command xinfer calibrate, on the real lanes, front end and engine of the echo model."""

from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.calibrate_check import check_calibration
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.predict.calibration import load_calibration

from .running import run


def test_calibrate_writes_what_a_server_accepts_prints_it_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'echo.json'
    code = run(
        'calibrate', '--model', 'echo', '--rounds', '2', '--requests', '8', '--workers', '1', '2',
        '1', '--batches', '1', '1', '2', '--output', path, '--plot',
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    for part in ('echo on ', 'fit error: ', 'all stages', f'written: {path}'):
        assert part in printed
    made = load_calibration(str(path))
    assert (made.model, made.name) == ('echo', 'echo')
    assert made.bound == (1, 2, 1)
    assert [len(batch) for batch in made.batch_work] == [1, 1, 2]
    assert len(made.infer_ms) == 2
    assert made.fit_error is not None
    assert min(made.front_end_ms, made.output_ms) > 0.0
    for axis in (1, 2, 3):
        assert (np.diff(made.rates, axis=axis) <= 1e-9).all()
    assert len(made.date) == len('2026-01-31')
    assert (tmp_path / 'echo.png').stat().st_size > 5_000
    config = ServerConfig(model='echo', calibration=str(path))
    assert check_calibration(config, made, echo_contract()) == ''


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--output a.json', 'the following arguments are required: --model'),
        ('--model echo', 'the following arguments are required: --output'),
        ('--model echo --output a.txt', 'must end with .json'),
        ('--model echo --output /no/such/a.json', 'there is no folder /no/such'),
        ('--model ecko --output a.json', 'ecko'),
        ('--model echo --output a.json --workers 1 1', 'expected 3 arguments'),
        ('--model echo --output a.json --workers 0 1 1', 'a whole number from 1 to 8'),
        ('--model echo --output a.json --batches 1 1 9', 'a whole number from 1 to 8'),
        ('--model echo --output a.json --rounds 0', 'a whole number from 1 to 10000'),
        ('--model echo --output a.json --rtc-jacobian none', "choose from 'identity', 'vjp'"),
        ('--model echo --output a.json --torch-threads 0', '--torch-threads: torch_threads is 0'),
        ('--model= --output a.json', '--model is empty'),
    ],
)
def test_mistake_ends_with_one_line_and_measures_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('calibrate', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


def test_help_teaches_what_is_measured_how_long_it_takes_and_when_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run('calibrate', '--help') == 0
    text = capsys.readouterr().out
    for part in ('how long it takes', 'when to repeat it', 'xinfer calibrate --model tiny'):
        assert part in text
    for reachable in ('guided', 'hard_prefix', 'vjp', 'linear', 'exp', 'tiny, echo'):
        assert reachable in text
    assert 'default: None' not in text
