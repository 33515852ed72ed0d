# SPDX-License-Identifier: Apache-2.0
"""The commands xinfer bench and xinfer erc --on live: what is refused before anything starts."""

import pytest

from .running import run


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('--against', 'openpi'), 'give it with --x-ms'),
        (('--against', 'triton', '--x-ms', '0'), "peer 'triton' is not known; known: openpi"),
        (('--json', 'bench.txt'), 'the name must end with .json'),
        (('--html', 'bench.htm'), 'the name must end with .html'),
        (('--png', '/no/such/folder'), 'no such folder; make it first'),
        (('--workload', 'bursty'), 'robots join and leave'),
        (('--workload', 'one-fast'), 'only the simulator does'),
        (('--duration', '0'), 'a duration of 0 s'),
        (('--robots', '60', '--robots-per-process', '2'), 'raise --robots-per-process'),
        (('--x-ms', '5', '--model', 'tiny'), 'leave --model out'),
        (('--attach', '--x-ms', '5'), '--attach takes a server as it is'),
        (('--set', 'max_robot=3'), 'did you mean max_robots?'),
        (('--bags', '/no/bag'), 'there is no such file or folder'),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, tuple) else '',
)
def test_mistake_is_told_before_anything_starts(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('bench', '--robots', '2', *arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ''


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('--on', 'live', '--world', 'stagger=1'), '--world goes with --on sim'),
        (('--on', 'live', '--jobs', '2'), '--jobs goes with --on sim'),
        (('--on', 'sim', '--x-ms', '5'), '--x-ms goes with --on live'),
        (('--on', 'sim', '--attach'), '--attach goes with --on live'),
        (('--on', 'live', '--end', '3'), 'nothing is left to count'),
        (('--on', 'live', '--criterion', 'p60:1'), 'criterion p60:1 is not known'),
        (('--on', 'live', '--attach', '--policy', 'fifo,edf'), 'has one scheduling policy'),
        (('--on', 'live', '--set', 'no_such=1'), 'no_such'),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, tuple) else '',
)
def test_search_tells_a_mistake_before_anything_starts(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run('erc', *arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
