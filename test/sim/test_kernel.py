# SPDX-License-Identifier: Apache-2.0
"""The compiled simulator and the readable one tell the same story, event for event."""

import dataclasses

import numpy as np
import pytest

from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import POLICIES, FifoSettings, policy_settings
from xinfer_ros.sim.kernel import Lanes
from xinfer_ros.sim.reference import simulate_reference
from xinfer_ros.sim.scenario import Round, Scenario, draw_scenario
from xinfer_ros.sim.simulation import SimulationResult, simulate
from xinfer_ros.sim.workload import Burst, Workload, make_workload
from xinfer_ros.sim.world import World

MS = 1_000_000
KEEP = {'keep_transitions': True, 'keep_decisions': True}
COMING_AND_GOING = Workload(
    name='coming and going',
    cycles_ms=((90.0, 90.0, 400.0),),
    robots=11,
    bursts=(Burst(at_s=0.3, robots=6, responses=4), Burst(at_s=1.0, robots=2, responses=1)),
)


@pytest.fixture(scope='module')
def paper() -> Calibration:
    return load_calibration('paper')


@pytest.fixture(scope='module')
def batching(paper: Calibration) -> Calibration:
    """Return a device that takes two to four requests of a stage as one unit."""
    return dataclasses.replace(
        paper, batch_work=((1.0, 1.7), (1.0, 1.8, 2.6), (1.0, 1.2, 1.4, 1.6))
    )


def assert_same(result: SimulationResult, other: SimulationResult) -> None:
    assert result.events == other.events
    np.testing.assert_array_equal(result.responses, other.responses)
    np.testing.assert_array_equal(result.transitions, other.transitions)
    assert result.decisions == other.decisions


def assert_all_kernels_agree(scenario: Scenario, calibration: Calibration, policy: str) -> None:
    settings = policy_settings(policy, calibration)
    compiled = simulate(scenario, calibration, settings, **KEEP)
    assert len(compiled.decisions) >= 3 * len(compiled.responses) > 0
    assert_same(compiled, simulate_reference(scenario, calibration, settings, **KEEP))
    core = native_core(calibration, settings)
    assert_same(compiled, simulate_reference(scenario, calibration, settings, core, **KEEP))


@pytest.mark.slow
@pytest.mark.parametrize('policy', POLICIES)
@pytest.mark.parametrize(
    ('workload', 'robots'), [('alternating', 18), ('parcel', 14), ('multiple', 13)]
)
def test_kernels_and_cores_agree_on_whole_rounds(
    paper: Calibration, policy: str, workload: str, robots: int
) -> None:
    scenario = draw_scenario(
        make_workload(workload), robots, paper, seed=1, round=Round(warm_up_s=0.0, end_s=6.0)
    )
    assert_all_kernels_agree(scenario, paper, policy)


@pytest.mark.parametrize('policy', POLICIES)
def test_kernels_agree_in_a_rough_world(paper: Calibration, policy: str) -> None:
    """Jitter, noise, a slow device, robots that come and go."""
    world = World(jitter_ms=15.0, work_sd=0.3, mismatch_sd=0.2, slowdown=1.1, stagger=1.0)
    scenario = draw_scenario(
        COMING_AND_GOING, 1, paper, seed=7, world=world, round=Round(warm_up_s=0.0, end_s=1.5)
    )
    assert_all_kernels_agree(scenario, paper, policy)


@pytest.mark.parametrize('policy', ['foresight', 'foresight_shed'])
def test_kernels_agree_on_a_device_that_batches(batching: Calibration, policy: str) -> None:
    scenario = draw_scenario(
        make_workload('parcel'), 24, batching, seed=3, round=Round(warm_up_s=0.0, end_s=1.5)
    )
    assert_all_kernels_agree(scenario, batching, policy)
    result = simulate(scenario, batching, policy_settings(policy, batching), **KEEP)
    assert result.transitions[:, 3].max() > 1


def test_one_robot_sends_once_a_period_and_leaves_after_its_quota(paper: Calibration) -> None:
    scenario = draw_scenario(
        make_workload('constant:150'), 1, paper, seed=0, round=Round(warm_up_s=0.0, end_s=2.0)
    )
    settings = policy_settings('fifo', paper)
    sent = simulate_reference(scenario, paper, settings).responses[:, 2]
    assert (np.diff(sent) == 180 * MS).all()
    assert sent[-1] < 2000 * MS <= sent[-1] + 180 * MS
    few = dataclasses.replace(scenario, quota=np.array([4]))
    assert len(simulate_reference(few, paper, settings).responses) == 4
    none = dataclasses.replace(scenario, quota=np.array([0]))
    nothing = simulate_reference(none, paper, settings, **KEEP)
    assert nothing.responses.shape == nothing.transitions.shape == (0, 5)


def test_latency_of_a_lone_robot_is_the_sum_of_its_delays(paper: Calibration) -> None:
    """Nothing is drawn: network twice, CPU preparation, and each stage until it is seen to end."""
    world = World(network_sd=0.0, front_end_sd=0.0, work_sd=0.0, mismatch_sd=0.0)
    scenario = draw_scenario(
        make_workload('constant:150'),
        1,
        paper,
        seed=0,
        world=world,
        round=Round(warm_up_s=0.0, end_s=1.0),
    )
    result = simulate_reference(scenario, paper, policy_settings('xinfer', paper))
    delays_ms = 2 * world.network_ms + world.front_end_ms + 3 * world.observation_ms
    latency_ms = (result.responses[:, 3] - result.responses[:, 2]) / MS
    np.testing.assert_allclose(latency_ms, delays_ms + paper.alone_ms, atol=1e-5)


def test_what_is_not_asked_for_is_not_kept(paper: Calibration) -> None:
    scenario = draw_scenario(
        make_workload('alternating'), 3, paper, seed=0, round=Round(warm_up_s=0.0, end_s=1.0)
    )
    result = simulate_reference(scenario, paper, policy_settings('edf', paper))
    assert len(result.responses)
    assert result.transitions.shape == (0, 5)
    assert result.decisions == []


def test_lanes_know_when_waiting_work_could_start() -> None:
    lanes = Lanes((1, 1, 1), FifoSettings())
    assert not lanes.could_start()
    lanes.waiting[0] += 2
    assert lanes.could_start()
    lanes.start(1, 0, 1)
    assert not lanes.could_start()
    assert lanes.end(1) == (0, 1)
    assert lanes.waiting == [1, 1, 0]
    assert lanes.could_start()
