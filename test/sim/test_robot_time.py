# SPDX-License-Identifier: Apache-2.0
"""Robots that execute rows: both kernels agree, and a lone robot does what can be foretold."""

import dataclasses

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sim.reference import simulate_reference
from xinfer_ros.sim.robot_time import FAST_STEPS, ROBOT_TIME, ROW_NS, SLOW_STEPS, draw_robot_time
from xinfer_ros.sim.robot_time_metrics import DEVICE, EXECUTED, STARVED, TICKS
from xinfer_ros.sim.scenario import Round, Scenario
from xinfer_ros.sim.simulation import SimulationResult, simulate
from xinfer_ros.sim.world import World

QUIET = World(
    work_sd=0.0, mismatch_sd=0.0, front_end_ms=0.0, network_ms=0.0, observation_ms=0.0,
)  # fmt: skip


@pytest.fixture(scope='module')
def l40s() -> Calibration:
    return load_calibration('pi05_l40s')


def _scenario(
    calibration: Calibration, name: str, robots: int, end_s: float, world: World | None = None
) -> Scenario:
    workload, short = ROBOT_TIME[name], Round(warm_up_s=1.0, end_s=end_s)
    if world is None:
        return draw_robot_time(workload, robots, calibration, seed=3, round=short)
    return draw_robot_time(workload, robots, calibration, seed=3, world=world, round=short)


def _assert_same(result: SimulationResult, other: SimulationResult) -> None:
    np.testing.assert_array_equal(result.responses, other.responses)
    np.testing.assert_array_equal(result.transitions, other.transitions)
    assert result.decisions == other.decisions
    assert result.events == other.events
    exact = [TICKS, STARVED, EXECUTED]
    np.testing.assert_array_equal(result.rows[:, exact], other.rows[:, exact])
    np.testing.assert_allclose(result.rows[:, DEVICE], other.rows[:, DEVICE])


@pytest.mark.parametrize('policy', POLICIES)
def test_kernels_agree_in_robot_time(l40s: Calibration, policy: str) -> None:
    scenario = _scenario(l40s, 'half-fast', 6, 5.0)
    settings = policy_settings(policy, l40s)
    keep = {'keep_transitions': True, 'keep_decisions': True}
    compiled = simulate(scenario, l40s, settings, **keep)
    assert len(compiled.responses) > 20
    _assert_same(compiled, simulate_reference(scenario, l40s, settings, **keep))
    core = native_core(l40s, settings)
    _assert_same(compiled, simulate_reference(scenario, l40s, settings, core, **keep))
    found, read = compiled.metrics(scenario), core.mirror_error
    assert found.mirror_error_steps == pytest.approx(read, rel=0.02)


def test_lone_robot_never_starves_once_it_has_begun(l40s: Calibration) -> None:
    scenario = _scenario(l40s, 'all-fast', 1, 20.0, QUIET)
    result = simulate(scenario, l40s, policy_settings('round_robin', l40s))
    assert result.rows[0, TICKS] == pytest.approx(19.0 * 30, abs=2)
    assert result.rows[0, STARVED] == 0
    assert result.metrics(scenario).starvation == 0.0


def test_robot_starves_for_as_long_as_a_chunk_takes_beyond_its_rows(l40s: Calibration) -> None:
    """A chunk of two rows every 73 ms: of the 2.2 ticks of each batch, all but two are starved."""
    scenario = _scenario(l40s, 'all-fast', 1, 31.0, QUIET)
    rows = dataclasses.replace(scenario.rows, execution_steps=np.array([2]))
    short = dataclasses.replace(scenario, rows=rows)
    counts = simulate(short, l40s, policy_settings('serial', l40s)).rows[0]
    # what is executed while the next chunk is computed is lost to it: two rows every other chunk
    assert counts[EXECUTED] / counts[TICKS] == pytest.approx(2 * ROW_NS / (2 * 73e6), abs=0.03)


def test_tiers_share_a_fleet_as_the_workload_says() -> None:
    assert ROBOT_TIME['all-fast'].execution_steps(3) == (FAST_STEPS,) * 3
    assert ROBOT_TIME['one-fast'].execution_steps(3) == (FAST_STEPS, SLOW_STEPS, SLOW_STEPS)
    assert ROBOT_TIME['half-fast'].execution_steps(4) == (FAST_STEPS,) * 2 + (SLOW_STEPS,) * 2


def test_equal_seeds_give_equal_rounds(l40s: Calibration) -> None:
    one, two = (_scenario(l40s, 'one-fast', 4, 3.0) for _ in range(2))
    np.testing.assert_array_equal(one.draws, two.draws)
    np.testing.assert_array_equal(one.start_ns, two.start_ns)


def test_fleet_of_nobody_is_refused(l40s: Calibration) -> None:
    with pytest.raises(ConfigError, match='1 to 4096'):
        _scenario(l40s, 'one-fast', 0, 3.0)
