# SPDX-License-Identifier: Apache-2.0
"""Workloads from recorded budgets."""

from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.trace import load_workload


@pytest.mark.parametrize('text', ['90\n90.0\n\n400\n', '[90, 90, 400]', ' [90,\n90, 4e2]\n'])
def test_budgets_stand_in_lines_or_in_a_list(tmp_path: Path, text: str) -> None:
    (tmp_path / 'budgets').write_text(text)
    workload = load_workload(f'trace:{tmp_path / "budgets"}')
    assert workload.cycles_ms == ((90.0, 90.0, 400.0),)
    assert workload.name == f'trace:{tmp_path / "budgets"}'


def test_other_workloads_keep_their_names() -> None:
    assert load_workload('parcel').name == 'parcel'
    assert load_workload('constant:150').cycles_ms == ((150.0,),)


@pytest.mark.parametrize(
    ('content', 'part'),
    [
        (b'90\nfast\n', "could not convert string to float: 'fast'; budgets in ms are needed"),
        (b'[90, "x"]', 'budgets in ms are needed'),
        (b'[90, [4]]', 'budgets in ms are needed'),
        (b'[90', 'budgets in ms are needed'),
        (b'\n', 'is empty'),
        (b'\xff\xfe', 'is no text'),
        (b'90\n-1\n', 'more than 0'),
    ],
)
def test_file_of_no_budgets_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / 'budgets').write_bytes(content)
    with pytest.raises(ConfigError, match=part):
        load_workload(f'trace:{tmp_path / "budgets"}')


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='cannot be read: No such file'):
        load_workload(f'trace:{tmp_path / "none"}')
    with pytest.raises(ConfigError, match='trace:FILE'):
        load_workload('trace:')
