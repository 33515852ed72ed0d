# SPDX-License-Identifier: Apache-2.0
"""Weights and gains of real-time chunking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.core.guidance import Schedule, guidance_gains, prefix_weights


def test_gains_for_a_maximum_of_five_are_those_of_the_paper() -> None:
    expected = [5, 5, 4.25, 2.76, 2.17, 2, 2.17, 2.76, 4.25, 5]
    np.testing.assert_allclose(guidance_gains(10, 5.0), expected, atol=0.005)


def test_gains_for_a_maximum_of_ten_reach_nine() -> None:
    expected = [10, 9.11, 4.25, 2.76, 2.17, 2, 2.17, 2.76, 4.25, 9.11]
    np.testing.assert_allclose(guidance_gains(10, 10.0), expected, atol=0.005)


@pytest.mark.parametrize(('steps', 'gain'), [(0, 5.0), (10, -1.0)])
def test_senseless_gains_are_refused(steps: int, gain: float) -> None:
    with pytest.raises(ValueError, match='at least'):
        guidance_gains(steps, gain)


def test_linear_weights_fall_evenly() -> None:
    expected = [1, 1, 4 / 5, 3 / 5, 2 / 5, 1 / 5, 0, 0]
    np.testing.assert_allclose(prefix_weights(8, 2, 6, Schedule.LINEAR), expected, atol=1e-6)


def test_exponential_weights_fall_faster_than_linear_ones() -> None:
    fraction = np.array([4, 3, 2, 1]) / 5
    expected = fraction * (np.exp(fraction) - 1) / (np.e - 1)
    weights = prefix_weights(8, 2, 6, Schedule.EXP)
    np.testing.assert_allclose(weights, [1, 1, *expected, 0, 0], atol=1e-6)


def test_ones_and_zeros_are_steps() -> None:
    np.testing.assert_array_equal(prefix_weights(5, 1, 3, Schedule.ONES), [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(prefix_weights(5, 1, 3, Schedule.ZEROS), [1, 0, 0, 0, 0])


def test_commitment_is_lowered_to_the_end() -> None:
    np.testing.assert_array_equal(prefix_weights(4, 3, 2, Schedule.LINEAR), [1, 1, 0, 0])


@pytest.mark.parametrize(('commitment', 'end'), [(-1, 3), (3, 9), (9, 3), (2, -1)])
def test_counts_outside_the_chunk_are_refused(commitment: int, end: int) -> None:
    with pytest.raises(ValueError, match='allowed is 0 to the horizon of 8'):
        prefix_weights(8, commitment, end, Schedule.LINEAR)


@given(
    sizes=st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50)),
    schedule=st.sampled_from(Schedule),
)
def test_weights_fall_from_one_to_zero(sizes: tuple[int, int, int], schedule: Schedule) -> None:
    horizon, commitment, end = sizes[0], min(sizes[1], sizes[0]), min(sizes[2], sizes[0])
    weights = prefix_weights(horizon, commitment, end, schedule)
    assert (np.diff(weights) <= 0).all()
    assert (weights[: min(commitment, end)] == 1).all()
    assert (weights[end:] == 0).all()
    assert (weights >= 0).all()
    assert (weights <= 1).all()
