# SPDX-License-Identifier: Apache-2.0
"""The search for the capacity of a live server, on a scripted one."""

import pytest

from xinfer_ros.fleet.bench_run import FleetResult, LateGeneratorError
from xinfer_ros.fleet.criterion import PAPER, Criterion, parse_criterion
from xinfer_ros.fleet.live_rounds import LIVE, LiveSearch, live_round
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.simulation_table import erc_line

from .bench_results import fleet_result
from .test_bench_plan import PLAN


def search(criterion: Criterion, max_robots: int = 16) -> LiveSearch:
    """Return a search under foresight."""
    return LiveSearch(policy='foresight', plan=PLAN, criterion=criterion, max_robots=max_robots)


def test_capacity_is_found_and_the_next_fleet_shown_failing() -> None:
    tested: list[tuple[int, bool]] = []
    record = search(parse_criterion('p50:150')).run(
        lambda robots, seed: fleet_result(robots, 20.0 * robots, seed=seed),
        lambda name, robots, rounds, faults: tested.append((robots, not faults)),
    )
    assert (record.erc, record.first_failing) == (7, 8)
    assert (record.criterion, record.calibration) == ('p50:150', LIVE)
    assert (7, True) in tested
    assert (8, False) in tested


@pytest.mark.parametrize('fault', ['unanswered', 'refused', 'wrong'])
def test_fleet_with_a_single_error_fails(fault: str) -> None:
    """Zero errors in each window, however quick the rest."""
    said: list[str] = []
    record = search(parse_criterion('p50:150')).run(
        lambda robots, seed: fleet_result(robots, 5.0, seed=seed, **{fault: int(robots > 5)}),
        lambda name, robots, rounds, faults: said.extend(faults),
    )
    assert record.erc == 5
    reason = 'EXPIRED' if fault == 'refused' else fault
    expected = f'1 requests without a good answer ({reason} 1), none is allowed'
    assert expected in said
    assert record.faults == (expected,)


def test_round_is_judged_as_a_simulated_one() -> None:
    good = live_round(fleet_result(4, 60.0), policy='fifo', workload='constant:100', number=2)
    late = live_round(fleet_result(4, 160.0), policy='fifo', workload='constant:100', number=2)
    assert (good.policy, good.robots, good.round, good.errors) == ('fifo', 4, 2, 0)
    assert (good.attainment, good.p50_ms, good.goodput) == (1.0, 60.0, 20.0)
    assert good.mean_rate_hz == pytest.approx(5.0)
    assert PAPER.passes([good])
    assert not PAPER.passes([late])


def test_fleet_that_gets_nothing_at_all_fails_every_criterion() -> None:
    nothing: RoundRecord = live_round(
        fleet_result(1, 60.0, unanswered=10), policy='fifo', workload='any', number=1
    )
    assert (nothing.responses, nothing.errors) == (0, 10)
    for name in ('paper', 'strict', 'p50:150'):
        assert not parse_criterion(name).passes([nothing])


def test_fleet_that_was_not_measured_ends_the_search() -> None:
    def late(robots: int, seed: int) -> FleetResult:
        raise LateGeneratorError('the load generator was late')

    with pytest.raises(LateGeneratorError):
        search(PAPER).run(late, lambda *told: None)


def test_fleets_that_can_not_be_measured_bound_the_search_and_say_so() -> None:
    """A load generator that is late with ten robots takes nothing from what seven have shown."""

    def measure(robots: int, seed: int) -> FleetResult:
        if robots > 9:
            raise LateGeneratorError(f'{robots} robots: the load generator was late')
        return fleet_result(robots, 10.0 * robots, seed=seed)

    record = search(parse_criterion('p50:150')).run(measure, lambda *told: None)
    assert (record.erc, record.first_failing) == (9, None)
    assert record.faults == ('not measured, 10 robots: the load generator was late',)
    assert erc_line(record, 16) == (
        'foresight: not measured, 10 robots: the load generator was late'
    )
    record = search(parse_criterion('p50:85')).run(measure, lambda *told: None)
    assert (record.erc, record.first_failing) == (8, 9)


def test_load_generator_that_was_late_once_is_asked_again() -> None:
    asked: list[int] = []

    def measure(robots: int, seed: int) -> FleetResult:
        asked.append(robots)
        if asked.count(robots) == 1:
            raise LateGeneratorError('the load generator was late')
        return fleet_result(robots, 20.0 * robots, seed=seed)

    record = search(parse_criterion('p50:150')).run(measure, lambda *told: None)
    assert (record.erc, record.first_failing) == (7, 8)
