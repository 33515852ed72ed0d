# SPDX-License-Identifier: Apache-2.0
"""The command xinfer brain."""

import json
from argparse import Namespace
from pathlib import Path

import pytest
from fleet.brain_figures import runs

from xinfer_ros.cli.brain import tell

from .running import run


def test_sim_prints_a_row_writes_a_record_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, picture = tmp_path / 'b.json', tmp_path / 'b.png'
    code = run(
        'brain', 'sim', '--robots', '6', '--minutes', '3', '--controller', 'static:4',
        '--json', numbers, '--plot', picture,
    )  # fmt: skip
    assert code == 0
    assert 'steady, 6 robots: nothing happens' in capsys.readouterr().out
    (record,) = json.loads(numbers.read_text())
    assert (record['controller'], record['robots'], record['scenario']) == (
        'static:4', 6, 'steady',
    )  # fmt: skip
    assert {'rps', 'hits', 'episodes_per_min', 'jain', 'onset_s'} <= set(record)
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize(('default', 'code'), [(2.45, 0), (1.9, 1)])
def test_table_ends_with_one_if_a_bar_does_not_hold(
    default: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Namespace(json=tmp_path / 't.json', plot=None)
    assert tell(runs(default), files) == code
    assert ('NO' in capsys.readouterr().out) == bool(code)
    records = json.loads(files.json.read_text())
    assert {'controller', 'robots', 'scenario', 'rps', 'hits'} <= set(records[0])


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('sim --controller workingset', 'did you mean working_set?'),
        ('sim --controller static', 'did you mean static:K?'),
        ('sim --scenario calm', "scenario 'calm' is not known; known: steady, capacity, robots"),
        (
            'sim --set admit_share=2',
            '--set: admit_share is 2.0 (float); allowed: a number from 0.1',
        ),
        ('sim --set admitshare=1', 'did you mean admit_share?'),
        ('sim --controller open --set admit_share=0.8', 'controller open has none'),
        ('sim --minutes 0', 'a number from 1 to 600'),
        ('sim --scenario longer --minutes 10', 'steady at 10 min; 10 min end before that'),
        ('sim --scenario robots --robots 48', 'makes the fleet 48 robots; 48 at the start'),
        ('table --quick --seeds 8', 'not allowed with argument'),
        ('sim --plot a.pdf', 'must end with .png'),
        ('table --seeds 0', 'a whole number from 1 to 1000'),
        ('table --json a.txt', 'must end with .json'),
    ],
)
def test_mistake_ends_with_one_line(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('brain', *line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


def test_help_tells_controllers_scenarios_and_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in (('brain',), ('brain', 'table'), ('brain', 'sim')):
        assert run(*command, '--help') == 0
        text = capsys.readouterr().out
        assert 'working_set' in text
        assert 'examples:' in text
