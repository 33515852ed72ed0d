# SPDX-License-Identifier: Apache-2.0
"""The command xinfer: what it prints and writes, and how it refuses."""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from xinfer_ros.cli import main
from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.settings import POLICIES, SlackGateSettings
from xinfer_ros.setting import changes

TINY = ('--warm-up', '2', '--end', '8', '--jobs', '1')


def _run(*arguments: str | Path) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse
        return int(end.code or 0)


@pytest.mark.parametrize('policy', POLICIES)
def test_settings_of_a_policy_are_shown_with_their_meaning(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['settings', policy]) == 0
    printed = capsys.readouterr().out
    for field in fields(POLICIES[policy]):
        (line,) = [row for row in printed.splitlines() if row.startswith(f'│ {field.name} ')]
        assert line.count('│') == 4
        assert line.split('│')[3].strip(), f'{field.name} has no meaning'


def test_sim_prints_a_table_and_writes_records_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(
        'sim', '--robots', '6', '--policy', 'xinfer,fifo', '--rounds', '2', '--seed', '5', *TINY,
        '--json', tmp_path / 'a.json', '--plot', tmp_path / 'a.png',
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr()
    assert 'workload alternating, 2 to 8 s of each round, device paper' in printed.out
    assert printed.err == ''
    records = json.loads((tmp_path / 'a.json').read_text())
    assert [(r['policy'], r['round'], r['seed']) for r in records] == [
        ('xinfer', 1, 5), ('xinfer', 2, 6), ('fifo', 1, 5), ('fifo', 2, 6),
    ]  # fmt: skip
    assert all(r['mae_ms'] > 0 for r in records)
    assert (tmp_path / 'a.png').stat().st_size > 5_000


def test_sim_draws_attainment_over_several_sizes(tmp_path: Path) -> None:
    code = _run(
        'sim', '--robots', '4,8', '--policy', 'fifo,edf', '--rounds', '1', *TINY,
        '--plot', tmp_path / 'a.png',
    )  # fmt: skip
    assert code == 0
    assert (tmp_path / 'a.png').stat().st_size > 5_000


def test_sim_tells_decisions_as_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    code = _run(
        'sim', '--robots', '18', '--policy', 'xinfer', '--rounds', '1', *TINY, '--explain', '4',
        '--explain-at', '5',
    )  # fmt: skip
    assert code == 0
    told = capsys.readouterr().out.split('Decisions of xinfer, 18 robots:\n')[1].splitlines()
    assert len(told) == 4
    assert all(line.startswith('50') for line in told)


def test_sim_takes_a_trace_settings_and_another_world(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'budgets.txt').write_text('100\n300\n')
    common = ('sim', '--robots', '18', '--policy', 'xinfer', '--rounds', '1', *TINY)
    assert _run(*common, '--workload', f'trace:{tmp_path / "budgets.txt"}') == 0
    assert 'trace:' in capsys.readouterr().out
    reports = []
    for more in ([], ['--set', 'strict_gating=true'], ['--world', 'slowdown=1.3', 'tick_ms=3']):
        assert _run(*common, '--json', tmp_path / 'a.json', *more) == 0
        reports.append(json.loads((tmp_path / 'a.json').read_text())[0]['attainment'])
    assert reports[0] > max(reports[1:])


def test_erc_prints_populations_as_they_come_and_the_capacity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(
        'erc', '--on', 'sim', '--policy', 'fifo', '--rounds', '1', *TINY, '--max-robots', '24',
        '--json', tmp_path / 'a.json', '--plot', tmp_path / 'a.png',
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    assert 'fifo with 4 robots: 100.0 % on time, passes' in printed
    assert 'fails:' in printed
    (record,) = json.loads((tmp_path / 'a.json').read_text())
    assert f'fifo: {record["first_failing"]} robots fail: {record["faults"][0]}' in printed
    assert record['criterion'] == 'paper'
    assert record['first_failing'] == record['erc'] + 1
    assert {'tight_attainment', 'tight_p999_ms', 'min_rate_hz', 'mean_rate_hz'} <= set(record)
    assert (tmp_path / 'a.png').stat().st_size > 5_000


def test_erc_says_so_when_no_fleet_fails(capsys: pytest.CaptureFixture[str]) -> None:
    code = _run('erc', '--policy', 'fifo', '--rounds', '1', *TINY, '--max-robots', '2')
    assert code == 0
    assert 'fifo: no fleet of up to 2 robots fails; --max-robots' in capsys.readouterr().out


def test_decision_cost_prints_published_numbers_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(
        'decision-cost', '--robots', '8,30', '--policy', 'xinfer', '--implementation', 'native',
        '--repeat', '1', '--seconds', '1', '--json', tmp_path / 'a.json',
    )  # fmt: skip
    assert code == 0
    assert '41 / 63' in capsys.readouterr().out
    records = json.loads((tmp_path / 'a.json').read_text())
    assert [(r['implementation'], r['policy'], r['robots']) for r in records] == [
        ('native', 'xinfer', 8), ('native', 'xinfer', 30),
    ]  # fmt: skip
    assert all(0 < r['p50_us'] <= r['p99_us'] for r in records)


def test_tables_write_a_page_with_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(
        'tables', '--paper', '--rounds', '1', '--warm-up', '0.5', '--end', '2', '--max-robots',
        '4', '--jobs', '1', '--out', tmp_path, '--json', tmp_path / 'a.json',
    )  # fmt: skip
    assert code == 0
    assert 'Which claims hold in simulation' in capsys.readouterr().out
    values = json.loads((tmp_path / 'a.json').read_text())
    assert set(values) == {'rounds', 'ercs', 'claims'}
    assert len(values['ercs']) == 2 * 6 * 2
    page = (tmp_path / 'reproduction.md').read_text()
    assert '--rounds 1 --warm-up 0.5 --end 2 --max-robots 4' in page
    assert len(list((tmp_path / 'reproduction').glob('*.png'))) == 4


@pytest.mark.parametrize(
    ('line', 'part'),
    [
        ('sim --policy xinfr', "'xinfr' is not known; known: fifo, edf"),
        ('sim --workload parcels', 'workload parcels is not known'),
        ('sim --workload trace:/no/such', 'cannot be read: No such file'),
        ('sim --calibration nothing', 'no calibration nothing; shipped:'),
        ('sim --robots none', 'a whole number from 1 to 4096'),
        ('sim --robots 8,0', 'a whole number from 1 to 4096'),
        ('sim --warm-up 9 --end 8', '0 <= warm-up < end'),
        ('sim --period-ms 0', '1 to 60000 is allowed'),
        ('sim --policy xinfer --set entry_onli=true', 'did you mean entry_only?'),
        ('sim --policy xinfer --set entry_only', 'key=value is needed'),
        ('sim --policy xinfer --set entry_only=true entry_only=false', 'stands there twice'),
        ('sim --policy all --set threshold_ms=30', 'fifo has no setting threshold_ms'),
        ('sim --world slow=1', 'did you mean slowdown?'),
        ('sim --world tick_ms=0', 'must be more than 0'),
        ('sim --json /no/such/folder/a.json', 'there is no folder'),
        ('sim --plot a.pdf', 'must end with .png'),
        ('sim --explain-at 50', 'add --explain N'),
        ('sim --robots 1 --warm-up 1.999 --end 2', 'choose a later end'),
        ('erc --on moon', 'invalid choice'),
        ('erc --criterion papr', 'known: paper, strict'),
        ('tables', '--paper'),
        ('tables --paper --out /no/such/folder', 'there is no folder /no/such'),
        ('decision-cost --implementation rust', 'known: native, reference'),
        ('simulate', "invalid choice: 'simulate'"),
        ('', 'COMMAND'),
    ],
)
def test_mistake_ends_with_one_line_and_the_remedy(
    line: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith('xinfer: ')
    assert error.count('\n') == 1
    assert part in error


@pytest.mark.parametrize(
    'command', ['sim', 'erc', 'compare', 'tune', 'tables', 'decision-cost', 'fleet', 'replay']
)
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(command, '--help') == 0
    text = capsys.readouterr().out
    assert 'example' in text
    assert f'xinfer {command} ' in text
    assert 'default: None' not in text or command in ('fleet', 'replay')


def test_help_of_sim_explains_policies_and_workloads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run('sim', '--help') == 0
    text = capsys.readouterr().out
    assert 'foresight       The default:' in text
    assert '14 responses with 90 ms' in text


@pytest.mark.parametrize(
    ('pair', 'value'),
    [
        ('threshold_ms=35', 35.0),
        ('interference_model=False', False),
        ('lane_limits=1,2,3', (1, 2, 3)),
    ],
)
def test_setting_is_read_by_its_type(pair: str, value: object) -> None:
    assert changes(SlackGateSettings, [pair], 'it') == {pair.split('=')[0]: value}


@pytest.mark.parametrize(
    ('pair', 'part'),
    [
        ('threshold_ms=-1', 'a number >= 0'),
        ('threshold_ms=inf', 'a number >= 0'),
        ('interference_model=1', 'true or false'),
        ('lane_limits=1,2', 'three whole numbers > 0'),
        ('lane_limits=0,1,1', 'three whole numbers > 0'),
    ],
)
def test_value_that_does_not_fit_is_refused(pair: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        changes(SlackGateSettings, [pair], 'it')


def test_commands_are_found_without_the_packages_that_only_some_need() -> None:
    """A robot or a server without the readers of recordings has every other command."""
    code = (
        'import sys, xinfer_ros.cli, xinfer_ros.ros.executor_main\n'
        'print(*sorted({name.partition(".")[0] for name in sys.modules}))'
    )
    loaded = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    optional = {'av', 'h5py', 'lz4', 'mcap', 'mujoco', 'pyarrow', 'rosbags', 'torch', 'zstandard'}
    assert 'numpy' in loaded
    assert optional.isdisjoint(loaded)
