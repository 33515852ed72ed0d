# SPDX-License-Identifier: Apache-2.0
"""Batches chosen on the mirrors of the action queues."""

from collections import Counter
from dataclasses import replace

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings import policy_settings

from .driven_core import DrivenCore, Make, sharing_device

OBJECTIVES = ('starvation', 'steps', 'page')
INFER_MS = (40.0, 60.0, 80.0, 100.0)


@pytest.fixture(params=[native_core, reference_core])
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = request.param
    return chosen


def _device() -> Calibration:
    """Return a device that takes 20 ms for each request of a batch, and 20."""
    column = tuple(ms / INFER_MS[0] for ms in INFER_MS)
    return replace(sharing_device((1, 1, 1)), batch_work=(column,) * 3, infer_ms=INFER_MS)


def _fleet(core: DrivenCore, leftovers: dict[int, int], horizon: int = 10) -> None:
    """Let robots with so many rows left wait."""
    for robot, leftover in leftovers.items():
        core.submit(0.0, 10 + robot, 400.0, robot=robot)
        core.observe(0.0, robot, 100, leftover, horizon)


def test_round_robin_takes_the_robots_in_turn(make: Make) -> None:
    core = DrivenCore(make, 'round_robin', _device(), max_batch=2)
    _fleet(core, {2: 5, 0: 5, 1: 5})
    assert core.dispatch(0.0) == [(Stage.VIT, (10, 11))]
    for at_ms in (1.0, 2.0, 3.0):
        core.complete(at_ms, 10)
        started = core.dispatch(at_ms)
    assert started == [(Stage.VIT, (12,))]


def test_edf_takes_those_that_run_dry_first(make: Make) -> None:
    core = DrivenCore(make, 'armory_edf', _device(), max_batch=2)
    _fleet(core, {0: 9, 1: 2, 2: 8, 3: 1})
    assert core.dispatch(0.0) == [(Stage.VIT, (13, 11))]


def test_edf_counts_what_is_on_its_way(make: Make) -> None:
    core = DrivenCore(make, 'armory_edf', _device(), max_batch=1)
    _fleet(core, {0: 3, 1: 4})
    assert core.dispatch(0.0) == [(Stage.VIT, (10,))]
    for at_ms in (10.0, 20.0):
        core.complete(at_ms, 10)
        core.dispatch(at_ms)
    core.complete(40.0, 10)
    core.submit(40.0, 20, 400.0, robot=0)  # asks again before it can have seen its chunk
    assert core.dispatch(40.0) == [(Stage.VIT, (11,))]


@pytest.mark.parametrize('objective', ['starvation', 'steps'])
def test_lookahead_serves_a_dry_robot_before_full_ones(make: Make, objective: str) -> None:
    core = DrivenCore(make, 'lookahead', _device(), max_batch=4, objective=objective)
    _fleet(core, {0: 10, 1: 0, 2: 10, 3: 10})
    [(stage, keys)] = core.dispatch(0.0)
    assert stage is Stage.VIT
    assert keys[0] == 11


@pytest.mark.parametrize('objective', OBJECTIVES)
def test_lookahead_serves_a_fleet_that_tells_nothing(make: Make, objective: str) -> None:
    """Unknown horizons, and batches beyond the profile, must not kill it."""
    core = DrivenCore(make, 'lookahead', _device(), max_batch=16, objective=objective)
    for key in range(1, 21):
        core.submit(0.0, key, 400.0)
    core.observe(0.0, 3, 0, 0, 0)
    assert core.dispatch(0.0)


def _turns(make: Make, **changes: object) -> Counter[int]:
    """Return how often each of two fast and two slow robots was served in an overload."""
    core = DrivenCore(make, 'lookahead', _device(), max_batch=1, **changes)
    horizon = {0: 4, 1: 4, 2: 20, 3: 20}
    served: Counter[int] = Counter()
    key_of, executed = {}, dict.fromkeys(horizon, 0)
    good = dict.fromkeys(horizon, 0)
    at_ms = 0.0
    for robot in horizon:
        key_of[robot] = robot + 1
        core.submit(at_ms, robot + 1, 400.0, robot=robot)
        core.observe(at_ms, robot, 0, 0, horizon[robot])
    for key in range(10, 160):
        [(_, (chosen,))] = core.dispatch(at_ms)
        robot = next(robot for robot, other in key_of.items() if other == chosen)
        served[robot] += 1
        start = executed[robot]
        for _ in range(2):
            at_ms += 15.0
            core.complete(at_ms, chosen)
            core.dispatch(at_ms)
        at_ms += 10.0
        core.complete(at_ms, chosen)
        for other in horizon:
            executed[other] = min(executed[other] + 1, max(good[other], executed[other]))
        good[robot] = max(good[robot], start + horizon[robot])
        key_of[robot] = key
        core.submit(at_ms, key, 400.0, robot=robot)
        for other, rows in horizon.items():
            core.observe(at_ms, other, executed[other], good[other] - executed[other], rows)
    return served


def test_protection_keeps_the_light_tier_alive(make: Make) -> None:
    """Heavy weights shut the other tier out; by default they do not."""
    heavy = {'fast_weight': 50.0, 'tier_horizon_ms': 200.0}
    shut_out = _turns(make, objective='steps', protection=False, **heavy)
    assert shut_out[2] + shut_out[3] <= 2
    for objective in ('starvation', 'steps'):
        served = _turns(make, objective=objective, **heavy)
        assert min(served[robot] for robot in range(4)) >= 3


def test_only_the_ratio_of_weights_counts(make: Make) -> None:
    tiers = {'tier_horizon_ms': 200.0}
    heavy = _turns(make, fast_weight=4.0, slow_weight=1.0, **tiers)
    light = _turns(make, fast_weight=1.0, slow_weight=0.25, **tiers)
    assert heavy == light


def test_mirror_error_is_of_all_robots(make: Make) -> None:
    core = DrivenCore(make, 'armory_edf', _device())
    _fleet(core, {0: 10, 1: 10})
    core.observe(90.0, 0, 103, 7)
    core.observe(90.0, 1, 101, 9)
    assert core.mirror_error == 1.0


def test_unknown_objective_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError, match='objective is fun; one of starvation, steps, page'):
        policy_settings('lookahead', _device(), objective='fun')
