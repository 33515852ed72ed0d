# SPDX-License-Identifier: Apache-2.0
"""The commands xinfer bench and xinfer erc --on live: what is refused before anything starts."""

import os

import pytest

from xinfer_ros.cli.live import isolate

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
        (('--second', '30', '--duration', '20'), 'the second must lie within'),
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


def test_server_that_runs_is_looked_for_where_ros_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was started by ros2 launch has no domain of its own."""
    # set first, so that what is set here is taken back in the end
    monkeypatch.setenv('ROS_DOMAIN_ID', '1')
    monkeypatch.delenv('ROS_DOMAIN_ID')
    isolate(attach=True)
    assert 'ROS_DOMAIN_ID' not in os.environ
    isolate()
    assert 1 <= int(os.environ['ROS_DOMAIN_ID']) <= 101


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
