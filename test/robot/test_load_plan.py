# SPDX-License-Identifier: Apache-2.0
"""Plans of processes of a load generator, and what such processes and their parent say."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.load_plan import LoadPlan, shares
from xinfer_ros.robot.load_signals import (
    PROGRESS,
    START,
    Progress,
    progress_of,
    say,
    wait_for_start,
)

from .test_emulated_fleet import plan


def test_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / 'plan.json'
    plan(3).write(path)
    assert LoadPlan.read(path) == plan(3)


def test_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'plan.json'
    path.write_text('{"robots": [1]}')
    with pytest.raises(ConfigError, match='no plan of a load'):
        LoadPlan.read(path)


def test_lists_must_fit_together() -> None:
    with pytest.raises(ConfigError, match='2 robots with 3 first sends'):
        replace(plan(3), robots=(0, 1))
    with pytest.raises(ConfigError, match='a budget for each'):
        replace(plan(1), budgets_ns=((),))


def test_plan_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='cannot be written: Is a directory'):
        plan(1).write(tmp_path)


@given(st.integers(1, 300), st.integers(1, 64))
def test_robots_are_shared_evenly(robots: int, per_process: int) -> None:
    found = shares(robots, per_process)
    assert [number for share in found for number in share] == list(range(robots))
    sizes = [len(share) for share in found]
    assert max(sizes) <= per_process
    assert max(sizes) - min(sizes) <= 1


def test_start_is_a_number_or_the_end_of_the_parent() -> None:
    assert wait_for_start(io.StringIO(f'{START} 123\n')) == 123
    assert wait_for_start(io.StringIO('')) is None
    with pytest.raises(ConfigError, match='got'):
        wait_for_start(io.StringIO('hello\n'))


def test_progress_is_told_from_other_words() -> None:
    said = io.StringIO()
    say(said, PROGRESS, 7, 5)
    assert progress_of(said.getvalue().strip()) == Progress(sent=7, answered=5)
    assert progress_of('a warning of three') is None
