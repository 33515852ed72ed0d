# SPDX-License-Identifier: Apache-2.0
"""`xinfer episodes`: what a user sees of recordings, and makes of them."""

import json
from pathlib import Path

import pytest

from xinfer_ros.cli import main
from xinfer_ros.core.budget_sequence import load_budget_sequences

EPISODES = Path(__file__).parents[2] / 'episodes'
ONE = str(EPISODES / 'transfer_cube_0')


def _output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(['episodes', *arguments]) == 0
    return capsys.readouterr().out


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(['episodes', *arguments]) == 2
    return capsys.readouterr().err


def test_info_shows_cameras_rates_and_switches(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = _output(capsys, 'info', ONE, '--json', str(tmp_path / 'info.json'))
    for part in ('rosbag2', '8.97', '33.33', '224x320', 'jpeg', 'left_wrist', '300'):
        assert part in out
    assert '0.57 s right_gripper opens, 2.37 s right_gripper closes' in out
    (found,) = json.loads((tmp_path / 'info.json').read_text())['episodes']
    assert found['name'] == 'transfer_cube_0'
    assert [camera['timing']['dropped'] for camera in found['cameras']] == [0, 0, 0]
    assert len(found['switches']) == 6


def test_every_episode_of_a_folder_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    out = _output(capsys, 'budgets', str(EPISODES))
    assert all(f'transfer_cube_{number}' in out for number in range(3))
    assert 'coverage 83.5 to 85.5 %' in out


def test_budgets_become_a_workload(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sequences, picture = tmp_path / 'mine.json', tmp_path / 'mine.png'
    out = _output(capsys, 'budgets', ONE, '--output', str(sequences), '--plot', str(picture))
    assert '6x90 2x400 17x90' in out
    (found,) = load_budget_sequences(sequences).sequences
    assert len(found.budgets_ms) == 50
    assert picture.read_bytes()[:4] == b'\x89PNG'
    short = ('--robots', '2', '--rounds', '1', '--warm-up', '0', '--end', '3', '--jobs', '1')
    assert main(['sim', '--workload', f'trace:{sequences}', *short]) == 0


def test_other_rule_makes_other_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    out = _output(
        capsys, 'budgets', ONE, '--before', '0.1', '--after', '0.1', '--tight-ms', '50',
        '--wide-ms', '300', '--period-ms', '90',
    )  # fmt: skip
    assert 'a response every 90 ms' in out
    assert 'x50 ' in out
    assert 'x300 ' in out


def test_converted_episode_shows_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = str(tmp_path / 'cube.hdf5')
    assert f'written: {target}' in _output(capsys, 'convert', ONE, target, '--to', 'hdf5')
    out = _output(capsys, 'info', target)
    assert '2.37 s right_gripper closes' in out
    assert 'nothing is overwritten' in _refusal(capsys, 'convert', ONE, target, '--to', 'hdf5')


@pytest.mark.parametrize(
    ('arguments', 'part'),
    [
        (['info', '/nowhere'], 'readable are rosbag2'),
        (['info', ONE, '--grippers', 'left_griper'], '--grippers left_griper'),
        (['info', ONE, '--contact', 'left_gripper'], 'JOINT=EFFORT is needed'),
        (['info', ONE, '--contact', 'left_gripper=-1'], 'JOINT=EFFORT is needed'),
        (['info', ONE, '--contact', 'claw=1'], '--contact claw: episode transfer_cube_0 has'),
        (['info', ONE + '#9'], 'behind the # may stand: transfer_cube_0'),
        (['info', ONE, '--json', 'out.txt'], 'must end with .json'),
        (['budgets', ONE, '--period-ms', '0'], 'period_ms is 0'),
        (['budgets', ONE, '--plot', '/nowhere/a.png'], 'there is no folder /nowhere'),
        (['budgets', ONE, '--output', 'pyproject.json.txt'], 'must end with .json'),
    ],
)
def test_mistakes_are_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    error = _refusal(capsys, *arguments)
    assert part in error
    assert error.count('\n') == 1


def test_sequences_are_never_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / 'mine.json').write_text('mine')
    refusal = _refusal(capsys, 'budgets', ONE, '--output', str(tmp_path / 'mine.json'))
    assert 'nothing is overwritten' in refusal
    assert (tmp_path / 'mine.json').read_text() == 'mine'
