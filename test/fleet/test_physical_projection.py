# SPDX-License-Identifier: Apache-2.0
"""Parcels per hour from response times, against the published numbers."""

import pytest

from xinfer_ros.fleet.physical_projection import PhysicalProjection

PROJECTION = PhysicalProjection.published()


@pytest.mark.parametrize(
    ('latency_ms', 'handled'), [(50, 1968), (75, 1944), (150, 1892), (250, 1376)]
)
def test_measured_delays_give_what_was_measured(latency_ms: float, handled: float) -> None:
    assert PROJECTION.parcels_per_hour(1, latency_ms) == pytest.approx(handled)
    assert not PROJECTION.is_extrapolated(latency_ms)


def test_line_goes_on_where_the_measurements_end() -> None:
    """The fitted time at 200 ms, and the slope from 100 to 200 ms."""
    assert PROJECTION.parcel_s(250.001) == pytest.approx(3600 / 1376, abs=1e-3)
    slope_s = PROJECTION.parcel_s(350.0) - PROJECTION.parcel_s(250.001)
    assert slope_s == pytest.approx(100 * PROJECTION.slope_s, rel=1e-3)
    assert PROJECTION.is_extrapolated(350.0)


def test_quicker_than_the_measured_robot_is_no_quicker_robot() -> None:
    assert PROJECTION.parcels_per_hour(3, 1.0) == PROJECTION.parcels_per_hour(3, 50.0)


def test_formula_names_its_numbers() -> None:
    for number in ('50 ms', '200 ms', '2.6163 s', '0.0071353 s/ms'):
        assert number in PROJECTION.words()
