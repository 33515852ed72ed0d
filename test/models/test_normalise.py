# SPDX-License-Identifier: Apache-2.0
"""Quantile normalisation."""

import numpy as np
import pytest

from xinfer_ros.models.normalise import QuantileStatistics, normalise, unnormalise

_STATISTICS = QuantileStatistics(
    q01=np.array([-2, 0, 5], np.float32), q99=np.array([2, 1, 5], np.float32)
)


def test_quantiles_become_minus_one_and_one() -> None:
    np.testing.assert_allclose(normalise(_STATISTICS.q01, _STATISTICS), [-1, -1, -1])
    np.testing.assert_allclose(normalise(_STATISTICS.q99, _STATISTICS)[:2], [1, 1])


def test_middle_becomes_zero() -> None:
    """A state at the middle of the statistics reaches the model as 0 (case SL-08)."""
    middle = ((_STATISTICS.q01 + _STATISTICS.q99) / 2).astype(np.float32)
    np.testing.assert_allclose(normalise(middle, _STATISTICS)[:2], [0, 0])


def test_unnormalise_is_the_inverse() -> None:
    values = np.random.default_rng(0).uniform(-3, 3, (4, 16, 2)).astype(np.float32)
    two = QuantileStatistics(q01=_STATISTICS.q01[:2], q99=_STATISTICS.q99[:2])
    found = unnormalise(normalise(values, two), two)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, values, atol=1e-6)


def test_joint_that_never_moved_stays_where_it_was() -> None:
    found = unnormalise(np.full(3, 0.7, np.float32), _STATISTICS)
    assert found[2] == pytest.approx(5.0)


@pytest.mark.parametrize(('low', 'high'), [(1.0, 0.0), (np.nan, 1.0), (0.0, np.inf)])
def test_statistics_that_can_not_be_meant_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match='joint 1'):
        QuantileStatistics(q01=np.array([0, low], np.float32), q99=np.array([1, high], np.float32))


def test_statistics_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r'\(2,\)'):
        QuantileStatistics(q01=np.zeros(3, np.float32), q99=np.ones(2, np.float32))
