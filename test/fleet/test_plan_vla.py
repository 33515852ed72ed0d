# SPDX-License-Identifier: Apache-2.0
"""The bound of the VLA tier: throughput, deadlines and budgets make a number of robots."""

from dataclasses import replace

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import PAPER, STRICT, parse_criterion
from xinfer_ros.fleet.plan import constant
from xinfer_ros.fleet.plan_vla import BudgetMix, VlaTier, mix_of, operating_points
from xinfer_ros.fleet.trace import load_workload
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.settings import policy_settings

DEVICE = load_calibration('paper')


def tier(policy: str = 'foresight', criterion: str = 'paper') -> VlaTier:
    return VlaTier(policy_settings(policy, DEVICE), DEVICE, parse_criterion(criterion))


@pytest.mark.parametrize(
    ('policy', 'period_ms', 'budget_ms', 'simulated'),
    [
        ('foresight', 180.0, 60.0, 7),
        ('foresight', 180.0, 90.0, 12),
        ('foresight', 180.0, 120.0, 16),
        ('foresight', 180.0, 300.0, 27),
        ('foresight', 180.0, 400.0, 36),
        ('foresight', 90.0, 60.0, 4),
        ('foresight', 360.0, 90.0, 21),
        ('foresight', 360.0, 120.0, 28),
        ('serial', 180.0, 120.0, 5),
        ('xinfer', 180.0, 120.0, 15),
        ('edf', 180.0, 300.0, 23),
        ('robion', 180.0, 300.0, 21),
    ],
)
def test_bound_is_near_what_a_search_in_the_simulator_found(
    policy: str, period_ms: float, budget_ms: float, simulated: int
) -> None:
    found = tier(policy).robots(constant(budget_ms), period_ms)
    assert abs(found - simulated) <= max(0.15 * simulated, 1)


def test_a_looser_deadline_never_holds_fewer_robots() -> None:
    found = [tier().robots(constant(float(ms)), 180.0) for ms in range(10, 600, 7)]
    assert found == sorted(found)
    assert found[0] == 0


def test_nobody_is_held_by_a_deadline_shorter_than_a_request_alone() -> None:
    alone_ms = DEVICE.alone_ms + DEVICE.front_end_ms + DEVICE.reserved_ms
    assert tier().robots(constant(alone_ms - 0.1), 180.0) == 0
    assert tier().robots(constant(alone_ms), 180.0) == 1


def test_a_request_that_has_hardly_time_to_pass_meets_those_of_others() -> None:
    """Planned as if they came evenly, 60 ms held 9 robots of 180 ms (7 simulated), 18 of 360."""
    assert tier().robots(constant(60.0), 180.0) == 7
    assert 11 <= tier().robots(constant(60.0), 360.0) <= 13
    assert tier().robots(constant(400.0), 180.0) == 34


def test_robots_that_ask_half_as_often_are_nearly_twice_as_many() -> None:
    once, twice = (tier().robots(constant(90.0), period_ms) for period_ms in (180.0, 360.0))
    assert 1.75 * once <= twice <= 2 * once


def test_tight_requests_of_a_mixture_meet_tight_ones_alone() -> None:
    even = BudgetMix(name='even', cycles_ms=((60.0, 400.0),))
    assert tier().robots(even, 180.0) > 1.5 * tier().robots(constant(60.0), 180.0)


def test_a_robot_that_stands_still_while_its_brain_thinks_asks_less() -> None:
    mix = BudgetMix(name='two', cycles_ms=((90.0, 400.0),))
    assert mix.interval_ms(180.0) == pytest.approx(290.0)
    assert mix.interval_ms(180.0, 710.0) == pytest.approx(1000.0)


def test_robots_of_several_cycles_ask_by_the_mean_of_their_rates() -> None:
    mix = BudgetMix(name='two', cycles_ms=((100.0,), (300.0, 300.0)))
    assert mix.interval_ms(100.0) == pytest.approx(150.0)
    assert mix.shares == pytest.approx({100.0: 0.5, 300.0: 0.5})


def test_a_rare_tight_budget_may_be_missed_unless_each_class_counts() -> None:
    rare = BudgetMix(name='rare', cycles_ms=((50.0, *[400.0] * 49),))
    loose, tight = (tier().per_ms(constant(ms), 180.0) for ms in (400.0, 50.0))
    assert tier().per_ms(rare, 180.0) == pytest.approx(loose, rel=0.01)
    assert tight < tier(criterion='strict').per_ms(rare, 180.0) < 0.6 * loose
    assert (PAPER.class_attainment, STRICT.class_attainment) == (None, 0.95)


@pytest.mark.parametrize('policy', ['serial', 'dynamic_batch', 'robion', 'fifo', 'lookahead'])
def test_no_operating_point_gives_more_than_admission_reckons_with(policy: str) -> None:
    settings = policy_settings(policy, DEVICE)
    best = max(point.per_ms for point in operating_points(settings, DEVICE))
    assert best <= 1.07 * settings.capacity_per_ms(DEVICE)


def test_batches_of_a_stage_give_more_and_take_longer() -> None:
    batching = replace(DEVICE, batch_work=((1.0, 1.1), (1.0, 1.2), (1.0, 1.1)))
    settings = policy_settings('foresight', DEVICE)
    plain, batched = (operating_points(settings, device) for device in (DEVICE, batching))
    assert max(p.per_ms for p in batched) > 1.3 * max(p.per_ms for p in plain)
    assert max(p.latency_ms for p in batched) > max(p.latency_ms for p in plain)


@pytest.mark.parametrize('criterion', ['p50:150', 'starved:0.05'])
def test_criterion_without_deadlines_is_refused(criterion: str) -> None:
    with pytest.raises(ConfigError, match=r'asks for no deadlines; .* xinfer erc'):
        tier(criterion=criterion)


@pytest.mark.parametrize('workload', ['bursty', 'all-fast'])
def test_workload_without_one_fleet_or_deadlines_is_refused(workload: str) -> None:
    with pytest.raises(ConfigError, match='xinfer erc'):
        mix_of(load_workload(workload))
