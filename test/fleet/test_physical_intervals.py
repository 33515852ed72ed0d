# SPDX-License-Identifier: Apache-2.0
"""Intervals of shares, means and rates."""

from math import isnan, nan

import numpy as np
import pytest

from xinfer_ros.fleet.physical_intervals import bootstrapped, share


@pytest.mark.parametrize(
    ('successes', 'low', 'high'), [(0, 0.0, 0.1611), (10, 0.2993, 0.7007), (20, 0.8389, 1.0)]
)
def test_share_has_the_interval_of_wilson(successes: int, low: float, high: float) -> None:
    found = share(successes, 20)
    assert found.value == successes / 20
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_interval_of_a_mean_is_that_of_the_normal_distribution_for_many_values() -> None:
    values = np.random.default_rng(3).normal(10.0, 2.0, 400)
    found = bootstrapped(400, lambda drawn: float(values[drawn].mean()))
    assert found.value == values.mean()
    assert (found.low - found.value, found.high - found.value) == pytest.approx(
        (-0.196, 0.196), abs=0.03
    )


def test_interval_of_a_constant_has_no_width() -> None:
    found = bootstrapped(5, lambda drawn: 7.0)
    assert (found.value, found.low, found.high) == (7.0, 7.0, 7.0)


def test_resamples_without_a_figure_are_left_out() -> None:
    values = np.array([1.0, nan, nan])
    found = bootstrapped(3, lambda drawn: float(values[drawn].max()))
    assert isnan(found.value)
    assert (found.low, found.high) == (1.0, 1.0)


def test_figure_that_never_is_has_no_interval() -> None:
    found = bootstrapped(3, lambda drawn: nan)
    assert isnan(found.low)
    assert isnan(found.high)


def test_same_values_give_the_same_interval() -> None:
    values = np.arange(9.0)
    one, two = (bootstrapped(9, lambda drawn: float(values[drawn].mean())) for _ in range(2))
    assert one == two
