# SPDX-License-Identifier: Apache-2.0
"""What a round comes to, on responses that were made up."""

import numpy as np
import pytest

from xinfer_ros.sim.metrics import RoundMetrics, jain, round_metrics
from xinfer_ros.sim.robot_time_metrics import with_rows

MS = 1_000_000


def _metrics(rows: list[tuple[int, int, float, float]], robots: int = 2) -> RoundMetrics:
    """Return the metrics of responses: robot, time of sending, latency and budget [ms]."""
    responses = np.array(
        [(r, i, s * MS, (s + late) * MS, b * MS) for i, (r, s, late, b) in enumerate(rows)],
        dtype=np.int64,
    )
    return round_metrics(responses, warm_up_s=0.0, end_s=1.0, stayed=np.ones(robots, dtype=bool))


@pytest.mark.parametrize(
    ('values', 'index'),
    [((2.0, 2.0, 2.0), 1.0), ((3.0, 0.0, 0.0), 1 / 3), ((1.0, 3.0), 0.8), ((0.0, 0.0), 1.0)],
)
def test_jain_is_one_for_equals_and_least_for_a_monopoly(
    values: tuple[float, ...], index: float
) -> None:
    assert jain(np.array(values)) == pytest.approx(index)


def test_starvation_is_the_time_beyond_budgets_over_the_time_of_the_robots() -> None:
    found = _metrics([(0, 0, 50, 100), (0, 100, 150, 100), (1, 0, 100, 100), (1, 200, 50, 100)])
    assert found.starvation == pytest.approx(50 / (250 + 250))
    assert found.attainment == 0.75


def test_fairness_is_of_update_rates() -> None:
    assert _metrics([(0, 0, 1, 9), (0, 10, 1, 9), (0, 20, 1, 9), (1, 0, 1, 9)]).fairness == 0.8


def test_rows_tell_starvation_of_each_tier() -> None:
    by_responses = _metrics([(0, 0, 1, 9), (1, 0, 1, 9)])
    counts = np.zeros((3, 7))
    counts[:, :3] = [(100, 40, 60), (200, 20, 180), (50, 50, 0)]
    counts[:, 3:5] = [(10, 2.0), (10, 3.0), (0, 0.0)]
    counts[:, 6] = 500.0
    found = with_rows(by_responses, counts, np.array([10, 20, 20]))
    assert found.fast_starvation == pytest.approx(0.4)
    assert found.slow_starvation == pytest.approx((0.1 + 1.0) / 2)
    assert found.starvation == pytest.approx((0.4 + 0.1 + 1.0) / 3)
    assert found.steps_per_device_s == pytest.approx(240 / 0.5)
    assert found.mirror_error_steps == pytest.approx(0.25)


def test_fleet_of_one_tier_has_no_slow_one() -> None:
    counts = np.tile(np.array([10.0, 1, 9, 1, 0, 0, 100]), (2, 1))
    found = with_rows(_metrics([(0, 0, 1, 9), (1, 0, 1, 9)]), counts, np.array([10, 10]))
    assert (found.fast_starvation, found.slow_starvation) == (0.1, None)
