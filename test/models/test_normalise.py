# SPDX-License-Identifier: Apache-2.0
"""Normalisation by statistics."""

import numpy as np
import pytest

from xinfer_ros.models.normalise import (
    MeanStdStatistics,
    NoStatistics,
    QuantileStatistics,
    Statistics,
    normalise,
    unnormalise,
)

_STATISTICS = QuantileStatistics(
    q01=np.array([-2, 0, 5], np.float32), q99=np.array([2, 1, 5], np.float32)
)
_MEAN_STD = MeanStdStatistics(
    mean=np.array([0.3, -1.0], np.float32), std=np.array([0.5, 0.01], np.float32)
)


def test_quantiles_become_minus_one_and_one() -> None:
    np.testing.assert_allclose(normalise(_STATISTICS.q01, _STATISTICS), [-1, -1, -1])
    np.testing.assert_allclose(normalise(_STATISTICS.q99, _STATISTICS)[:2], [1, 1])


def test_middle_becomes_zero() -> None:
    """A state at the middle of the statistics reaches the model as 0 (case SL-08)."""
    middle = ((_STATISTICS.q01 + _STATISTICS.q99) / 2).astype(np.float32)
    np.testing.assert_allclose(normalise(middle, _STATISTICS)[:2], [0, 0])


def test_mean_becomes_exactly_zero() -> None:
    """A state that is the stored mean reaches the model as 0.0 (case SL-08)."""
    np.testing.assert_array_equal(_MEAN_STD.normalise(_MEAN_STD.mean), [0.0, 0.0])


def test_deviations_are_the_unit() -> None:
    """Mean 0.3, deviation 0.5 and 1.2 rad give 1.8 in model space, and back (case RT-06)."""
    value = np.array([1.2, -1.0], np.float32)
    assert _MEAN_STD.normalise(value)[0] == pytest.approx(1.8, abs=1e-6)
    np.testing.assert_allclose(_MEAN_STD.unnormalise(_MEAN_STD.normalise(value)), value, atol=1e-6)


@pytest.mark.parametrize(
    'statistics',
    [
        QuantileStatistics(q01=_STATISTICS.q01[:2], q99=_STATISTICS.q99[:2]),
        QuantileStatistics(q01=_STATISTICS.q01[:2], q99=_STATISTICS.q99[:2], margin=1e-6),
        _MEAN_STD,
        NoStatistics(dim=2),
    ],
    ids=['quantiles', 'quantiles with a margin', 'mean and deviation', 'none'],
)
def test_unnormalise_is_the_inverse(statistics: Statistics) -> None:
    values = np.random.default_rng(0).uniform(-3, 3, (4, 16, 2)).astype(np.float32)
    found = unnormalise(normalise(values, statistics), statistics)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, values, atol=1e-6)


def test_margin_widens_the_span_as_openpi_has_it() -> None:
    low, high = np.array([0.0]), np.array([1e-6])
    wide = QuantileStatistics(q01=low, q99=high, margin=1e-6)
    assert wide.normalise(high)[0] == pytest.approx(0.0, abs=1e-6)
    bare = QuantileStatistics(q01=low, q99=high)
    assert bare.normalise(high)[0] == pytest.approx(1.0, abs=1e-6)


def test_joint_that_never_moved_stays_where_it_was() -> None:
    found = unnormalise(np.full(3, 0.7, np.float32), _STATISTICS)
    assert found[2] == pytest.approx(5.0)


def test_robot_units_pass_where_a_model_takes_them() -> None:
    values = np.array([0.1, 5.0], np.float32)
    np.testing.assert_array_equal(NoStatistics(dim=2).normalise(values), values)


@pytest.mark.parametrize(
    'statistics', [_STATISTICS, NoStatistics(dim=3)], ids=['quantiles', 'none']
)
def test_first_joints_can_be_selected(statistics: Statistics) -> None:
    first = statistics.selected(2)
    assert first.dim == 2
    values = np.array([0.5, 0.25, 5.0], np.float32)
    np.testing.assert_array_equal(first.normalise(values[:2]), statistics.normalise(values)[:2])


@pytest.mark.parametrize(('low', 'high'), [(1.0, 0.0), (np.nan, 1.0), (0.0, np.inf)])
def test_statistics_that_can_not_be_meant_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match='joint 1'):
        QuantileStatistics(q01=np.array([0, low], np.float32), q99=np.array([1, high], np.float32))


@pytest.mark.parametrize('std', [-0.1, np.nan])
def test_deviation_that_can_not_be_meant_is_refused(std: float) -> None:
    with pytest.raises(ValueError, match=r'joint 0: mean = 0\.0'):
        MeanStdStatistics(mean=np.zeros(1, np.float32), std=np.array([std], np.float32))


def test_statistics_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r'\(2,\)'):
        QuantileStatistics(q01=np.zeros(3, np.float32), q99=np.ones(2, np.float32))
