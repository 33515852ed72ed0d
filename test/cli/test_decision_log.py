# SPDX-License-Identifier: Apache-2.0
"""The commands that read a decision log: explain, trace and replay-decisions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.sched.decision_log import BlockKind, block, part_head, read_part

from .running import run


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the decision logs of a simulated round under two policies."""
    found = tmp_path_factory.mktemp('simulated') / 'log'
    line = '--robots 22 --policy xinfer,slack_gate --rounds 1 --warm-up 0 --end 2 --jobs 1'
    assert run('sim', *line.split(), '--decision-log', found) == 0
    return found


def test_log_of_a_simulated_round_is_decided_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('replay-decisions', folder) == 0
    printed = capsys.readouterr().out
    assert 'VLA-2B under slack_gate, ' in printed
    assert 'run 2' in printed
    assert 'it decides the same: ' in printed
    assert run('replay-decisions', folder, '--run', '1') == 0
    assert 'VLA-2B under xinfer, ' in capsys.readouterr().out


def test_scheduler_that_decides_otherwise_ends_with_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = read_part((folder / 'decisions-0002-000001.xlog').read_bytes())
    header = replace(part.header, settings={**part.header.settings, 'threshold_ms': 0.0})
    data = part_head(header, part.state)
    data += b''.join(block(BlockKind.CALLS, piece) for piece in part.pieces)
    (tmp_path / 'other.xlog').write_bytes(data)
    assert run('replay-decisions', tmp_path / 'other.xlog') == 1
    printed = capsys.readouterr().out
    assert 'note: it was not closed in order' in printed
    assert 'it decides otherwise in part 1, ' in printed
    assert '  the log     ' in printed
    assert '  decided now ' in printed


def test_late_requests_are_listed_and_the_newest_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('explain', folder, '--run', '1', '--last', '3') == 0
    assert 'requests were late; the newest 3 of them' in capsys.readouterr().out
    assert run('explain', folder, '--run', '1', '--latest-late') == 0
    printed = capsys.readouterr().out
    assert ' of robot_' in printed
    assert 'chiefly because' in printed
    assert run('explain', folder, '5') == 0
    assert 'request 5 of robot_' in capsys.readouterr().out


def test_trace_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('trace', folder, '--output', tmp_path / 'trace.json') == 0
    assert 'open it in ui.perfetto.dev' in capsys.readouterr().out
    assert json.loads((tmp_path / 'trace.json').read_text())['traceEvents']


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('explain', 'the following arguments are required: LOG'),
        ('explain /no/such', 'decision log /no/such cannot be read: No such file'),
        ('explain {log} 99999', 'does not tell of a request 99999; it knows 1 to '),
        ('explain {log} 5 --latest-late', 'give a REQUEST, or --robot and --latest-late'),
        ('explain {log} --robot arm', 'the log has no robot arm; it has robot_0, '),
        ('explain {log} --run 9', 'holds no run 9; there are 1 to 2'),
        ('replay-decisions {log}/none', 'cannot be read: No such file'),
        ('trace {log} --output trace.txt', 'the name must end with .json'),
        ('sim --decision-log /no/such/log', 'there is no folder /no/such: make it first'),
    ],
)
def test_mistake_ends_with_one_line(
    line: str, part: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*line.format(log=folder).split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


@pytest.mark.parametrize('command', ['explain', 'trace', 'replay-decisions'])
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, '--help') == 0
    text = capsys.readouterr().out
    assert f'  xinfer {command} decisions' in text
    assert 'default: None' not in text
