# SPDX-License-Identifier: Apache-2.0
"""Records as they lie in a file."""

import json
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.records import output_file, write_lists, write_records

from .fake_rounds import erc_record, round_record

PROMISED = {
    'policy', 'workload', 'robots', 'round', 'seed', 'attainment', 'goodput', 'wide_mean_ms',
    'p50_ms', 'p99_ms', 'min_rate_hz', 'mae_ms', 'tight_attainment', 'tight_p999_ms', 'far_late',
    'min_rate_share', 'mean_rate_hz', 'real_time_factor',
}  # fmt: skip


def test_rounds_are_a_list_of_flat_objects(tmp_path: Path) -> None:
    write_records(tmp_path / 'a.json', [round_record(), round_record(round=2, mae_ms=None)])
    first, second = json.loads((tmp_path / 'a.json').read_text())
    assert set(first) >= PROMISED
    assert all(isinstance(value, str | int | float | None) for value in first.values())
    assert (second['round'], second['mae_ms']) == (2, None)


def test_number_that_is_none_is_written_as_null(tmp_path: Path) -> None:
    write_records(tmp_path / 'a.json', [round_record(min_rate_share=float('nan'))])
    assert json.loads((tmp_path / 'a.json').read_text())[0]['min_rate_share'] is None


def test_lists_are_written_by_name(tmp_path: Path) -> None:
    write_lists(tmp_path / 'a.json', rounds=[round_record()], ercs=[erc_record(18)])
    values = json.loads((tmp_path / 'a.json').read_text())
    assert values['ercs'][0]['erc'] == 18
    assert values['rounds'][0]['robots'] == 18


def test_file_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    assert output_file(tmp_path / 'a.json', '.json') == tmp_path / 'a.json'
    with pytest.raises(ConfigError, match=r'must end with \.json'):
        output_file(tmp_path / 'a.txt', '.json')
    with pytest.raises(ConfigError, match='there is no folder'):
        output_file(tmp_path / 'b' / 'a.json', '.json')
    (tmp_path / 'c.json').mkdir()
    with pytest.raises(ConfigError, match='is a folder'):
        output_file(tmp_path / 'c.json', '.json')
    with pytest.raises(ConfigError, match='cannot be written'):
        write_records(tmp_path / 'c.json', [])
