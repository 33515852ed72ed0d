# SPDX-License-Identifier: Apache-2.0
"""What robots ask for, robot by robot."""

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.sim.workload import RECORDED, Workload, make_workload


def _occurs(row: list[float], cycle: tuple[float, ...]) -> bool:
    """Return whether a row runs through a cycle from some place on, over and over."""
    length = len(cycle)
    return any(
        all(value == cycle[(place + step) % length] for step, value in enumerate(row))
        for place in range(length)
    )


def test_robot_plays_the_cycle_of_its_number_from_some_place_on() -> None:
    cycles = ((1.0, 2.0, 3.0), (10.0, 20.0), (100.0, 200.0, 300.0, 400.0))
    budgets = Workload(name='it', cycles_ms=cycles).budgets_ms(7, 50, np.random.default_rng(3))
    for robot, row in enumerate(budgets.tolist()):
        assert _occurs(row, cycles[robot % 3])


def test_places_depend_on_the_seed_alone() -> None:
    workload = Workload(name='it', cycles_ms=(tuple(map(float, range(1, 90))),))
    first, again, other = (
        workload.budgets_ms(5, 10, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_places_of_one_cycle_are_spread_over_it() -> None:
    workload = Workload(name='it', cycles_ms=(tuple(map(float, range(1, 101))),))
    starts = workload.budgets_ms(10, 1, np.random.default_rng(1))[:, 0]
    assert sorted((starts - 1) // 10) == list(range(10))


def test_recorded_workload_is_that_of_many_episodes() -> None:
    """At least 24, covered by tight budgets as in the published parcel workload: 36 to 78 %."""
    workload = make_workload(RECORDED)
    assert len(workload.cycles_ms) >= 24
    shares = [sum(b == 90.0 for b in cycle) / len(cycle) for cycle in workload.cycles_ms]
    assert 0.33 < min(shares) < 0.42
    assert 0.72 < max(shares) < 0.81
    assert np.mean(shares) == pytest.approx(0.64, abs=0.02)
    assert {budget for cycle in workload.cycles_ms for budget in cycle} == {90.0, 400.0}


@pytest.mark.parametrize('cycles', [(), ((),), ((90.0,), ()), ((0.0,),), ((float('nan'),),)])
def test_cycle_of_nothing_is_refused(cycles: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ConfigError, match='response budgets must be more than 0'):
        Workload(name='it', cycles_ms=cycles)


def test_unknown_workload_is_refused() -> None:
    with pytest.raises(ConfigError, match='parcel, recorded, constant:MS, trace:FILE'):
        make_workload('parsel')
