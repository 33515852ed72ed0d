# SPDX-License-Identifier: Apache-2.0
"""The command xinfer tune."""

import json
from pathlib import Path

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.ros.params_file import resolve

from .running import run

SHORT = ('--rounds', '1', '--warm-up', '1', '--end', '4', '--jobs', '1', '--max-robots', '6')


def test_tune_prints_a_table_and_writes_what_a_server_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'budgets.txt').write_text('90\n90\n300\n')
    numbers, picture, server = (tmp_path / name for name in ('a.json', 'a.png', 'a.yaml'))
    code = run(
        'tune', '--workload', f'trace:{tmp_path / "budgets.txt"}', '--policy', 'edf,serial',
        '--minutes', '0.02', *SHORT, '--json', numbers, '--plot', picture, '--out', server,
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    assert 'scheduling_policy: edf' in printed
    config = resolve(ServerConfig, '/fleet/xinfer_server', [server], {})
    assert (config.scheduling_policy, config.max_robots) == ('edf', 6)
    assert [r['policy'] for r in json.loads(numbers.read_text())] == ['edf', 'serial']
    assert picture.stat().st_size > 5_000


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('--minutes 0', 'more than 0 and up to 1440'),
        ('--minutes soon', 'more than 0 and up to 1440'),
        ('--out a.json', 'must end with .yaml'),
        ('--workload trace:/no/such', 'cannot be read'),
        ('--policy edfo', "'edfo' is not known"),
        ('--robots none', 'a whole number from 1 to 4096'),
    ],
)
def test_mistake_ends_with_one_line_and_tunes_nothing(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('tune', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error
