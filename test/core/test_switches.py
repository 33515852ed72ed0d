# SPDX-License-Identifier: Apache-2.0
"""Switches of grippers: of commands, of measured positions, beside noise."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.core.switches import Switch, find_switches, switch_amplitudes

Values = npt.NDArray[np.float32]


def _column(*parts: tuple[float, int]) -> Values:
    """Return one joint that stays at each value for so many rows."""
    return np.concatenate([np.full((rows, 1), value, np.float32) for value, rows in parts])


def _found(values: Values, ranges: npt.NDArray[np.float64] | None = None) -> list[Switch]:
    return find_switches(values, switch_amplitudes(values, ranges))


def _switch(row: int, rises: bool, column: int = 0) -> Switch:
    return Switch(row=row, column=column, rises=rises)


@pytest.mark.parametrize('width', [0.04, 0.8, 1.0, 100.0])
@pytest.mark.parametrize('closed', [0.0, -1.0])
def test_command_switches_at_its_row_whatever_its_unit(width: float, closed: float) -> None:
    values = closed + width * _column((0, 19), (1, 60), (0, 40))
    assert _found(values) == [_switch(19, True), _switch(79, False)]


def test_gripper_that_stops_at_an_object_has_closed() -> None:
    """The recorded grippers measure 0.53 to 0.61 around the cube, and 0.08 when empty."""
    values = np.vstack([
        _column((0.08, 20)), np.linspace(0.08, 0.97, 8, dtype=np.float32)[:, np.newaxis],
        _column((0.97, 20), (0.57, 40), (0.97, 10)),
    ])  # fmt: skip
    assert [switch.rises for switch in _found(values)] == [True, False, True]


def test_gripper_that_opens_in_two_moves_has_opened_once() -> None:
    assert _found(_column((0, 10), (0.5, 10), (1, 10))) == [_switch(10, True)]


def test_gripper_that_opens_halfway_after_it_was_wide_open_has_not_closed_again() -> None:
    found = _found(_column((1, 10), (0, 10), (0.5, 10)))
    assert found == [_switch(10, False), _switch(20, True)]


def test_noise_on_a_gripper_that_never_moves_is_no_switch() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.05, (1000, 2)).astype(np.float32)
    assert _found(noise) == []


def test_encoder_step_is_no_switch() -> None:
    assert _found(_column((0, 50), (0.0015, 50), (0, 50))) == []


def test_known_range_keeps_small_moves_from_being_switches() -> None:
    values = _column((0, 20), (0.1, 20))
    assert _found(values) == [_switch(20, True)]
    assert _found(values, np.array([1.0])) == []
    assert _found(values, np.array([np.nan])) == [_switch(20, True)]


def test_switches_of_several_joints_come_by_row() -> None:
    values = np.hstack([_column((0, 20), (1, 20)), _column((1, 10), (0, 30))])
    assert _found(values) == [_switch(10, False, column=1), _switch(20, True)]


@pytest.mark.parametrize('rows', [0, 1])
def test_nothing_switches_without_two_rows(rows: int) -> None:
    assert _found(np.ones((rows, 3), np.float32)) == []


LEVELS = st.lists(st.booleans(), min_size=2, max_size=120)


@given(LEVELS, st.floats(0, 0.1), st.integers(0, 2**32 - 1))
def test_every_change_of_a_clean_signal_is_found_and_nothing_else(
    levels: list[bool], noise: float, seed: int
) -> None:
    clean = np.array(levels, np.float64)[:, np.newaxis]
    values = clean + np.random.default_rng(seed).uniform(-noise, noise, clean.shape)
    changes = [row for row in range(1, len(levels)) if levels[row] != levels[row - 1]]
    found = find_switches(values, np.array([0.3]))
    assert found == [_switch(row, levels[row]) for row in changes]


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=60), st.integers(0, 60))
def test_later_rows_change_nothing_that_was_found(signal: list[float], cut: int) -> None:
    values, amplitudes = np.array(signal)[:, np.newaxis], np.array([0.5])
    whole = [switch for switch in find_switches(values, amplitudes) if switch.row < cut]
    assert find_switches(values[:cut], amplitudes) == whole


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=60))
def test_switches_alternate(signal: list[float]) -> None:
    found = find_switches(np.array(signal)[:, np.newaxis], np.array([0.5]))
    ways = [switch.rises for switch in found]
    assert all(one != other for one, other in itertools.pairwise(ways))
