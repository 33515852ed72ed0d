# SPDX-License-Identifier: Apache-2.0
"""Many robots and more than the device can do, on the simulator."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.admission import CapacityAdmission
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.kernel import Kernel
from xinfer_ros.sim.scenario import Round, draw_scenario
from xinfer_ros.sim.simulation import simulate
from xinfer_ros.sim.workload import Burst, Workload

PAPER = load_calibration('paper')
CAPACITY_PER_S = 0.95 * PAPER.saturated_per_ms * 1e3
BUDGET_MS, PERIOD_MS = 180.0, 180.0
ROBOT, INDEX, SENT, RECEIVED = range(4)
S = 1e9
Rows = npt.NDArray[np.int64]


@pytest.mark.parametrize('policy', ['foresight', 'xinfer', 'edf', 'fifo'])
def test_eight_robots_get_more_than_one_at_a_bearable_latency(policy: str) -> None:
    """SC-01: robots that ask again at once; the stages of different robots overlap."""
    workload = Workload(name='steady', cycles_ms=((400.0,),))
    settings = policy_settings(policy, PAPER)
    rate, latency_ms = {}, {}
    for robots in (1, 2, 4, 8):
        length = Round(warm_up_s=2.0, end_s=22.0, period_ms=10.0)
        scenario = draw_scenario(workload, robots, PAPER, seed=1, round=length)
        metrics = simulate(scenario, PAPER, settings).metrics(scenario)
        rate[robots], latency_ms[robots] = metrics.responses / 20.0, metrics.mean_ms
    assert rate[8] >= 2.0 * rate[1]
    assert latency_ms[8] <= 4.0 * latency_ms[1]
    assert rate[1] < rate[2] < rate[4]


def _run(
    robots: int, end_s: float, admission: CapacityAdmission, bursts: tuple[Burst, ...] = ()
) -> tuple[Rows, Rows]:
    """Simulate the default policy behind an admission; return responses and refusals."""
    workload = Workload(name='steady', cycles_ms=((BUDGET_MS,),), bursts=bursts)
    length = Round(warm_up_s=0.0, end_s=end_s, period_ms=PERIOD_MS)
    scenario = draw_scenario(workload, robots, PAPER, seed=2, round=length)
    settings = policy_settings('foresight', PAPER)
    kernel = Kernel(scenario, PAPER, settings, native_core(PAPER, settings), admission)
    kernel.run()
    return np.array(kernel.responses), np.array(kernel.refusals).reshape(-1, 5)


def _latency_ms(rows: Rows) -> npt.NDArray[np.float64]:
    return (rows[:, RECEIVED] - rows[:, SENT]) / 1e6


def test_beyond_the_capacity_some_are_refused_and_the_others_are_on_time() -> None:
    """SC-01, second half: 20 robots where 13 fit."""
    admission = CapacityAdmission(CAPACITY_PER_S)
    responses, refusals = _run(20, 30.0, admission)
    served, refused = set(responses[:, ROBOT]), set(refusals[:, ROBOT])
    assert len(served) == int(CAPACITY_PER_S * PERIOD_MS / 1e3)
    assert served | refused == set(range(20))
    assert not served & refused
    assert (_latency_ms(responses) <= BUDGET_MS).mean() >= 0.95


def test_an_overload_of_a_minute_leaves_those_who_were_there_alone() -> None:
    """SC-05: twice the capacity for 60 s, then the crowd leaves."""
    crowd = Burst(at_s=5.0, robots=21, responses=333)
    admission = CapacityAdmission(CAPACITY_PER_S)
    responses, refusals = _run(7, 75.0, admission, (crowd,))
    assert not set(refusals[:, ROBOT]) & set(range(7))
    admitted = set(responses[:, ROBOT])
    assert 7 < len(admitted) < 28
    for robot in admitted:
        mine = responses[responses[:, ROBOT] == robot]
        assert np.quantile(_latency_ms(mine), 0.99) <= BUDGET_MS
    answers = np.concatenate([responses, refusals])
    for robot in range(28):
        times = np.sort(answers[answers[:, ROBOT] == robot][:, RECEIVED])
        assert (np.diff(times) <= 3.0 * PERIOD_MS * 1e6).all()
    changes = sorted(
        itertools.chain(
            ((int(row[SENT]), 1) for row in responses),
            ((int(row[RECEIVED]), -1) for row in responses),
        )
    )
    in_server = list(itertools.accumulate(step for _, step in changes))
    assert max(in_server) <= len(admitted)  # at most one request a robot
    after = responses[responses[:, SENT] > (responses[responses[:, ROBOT] >= 7][:, SENT].max())]
    assert len(after) > 100
    assert (_latency_ms(after) <= BUDGET_MS).all()


def test_refused_robots_are_served_as_soon_as_the_crowd_has_gone() -> None:
    """SC-05: recovery within 2 s."""
    early = Burst(at_s=0.0, robots=13, responses=50)
    admission = CapacityAdmission(CAPACITY_PER_S)
    responses, refusals = _run(
        1, 20.0, admission, (early, Burst(at_s=2.0, robots=8, responses=99))
    )
    gone_ns = responses[responses[:, ROBOT] <= 13][:, RECEIVED].max()
    late = refusals[refusals[:, ROBOT] > 13]
    assert len(set(late[:, ROBOT])) >= 7
    assert late[:, RECEIVED].max() <= gone_ns + 2.0 * S
