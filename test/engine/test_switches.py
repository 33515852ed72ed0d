# SPDX-License-Identifier: Apache-2.0
"""The mechanisms of the engine, each off and on: everybody is served either way."""

import dataclasses
import itertools

import numpy as np
import pytest

from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import Calibration, load_calibration

from .simulated_fleet import SimulatedFleet

PAPER = load_calibration('paper')
ONE_UNIT = dataclasses.replace(PAPER, rates=np.ascontiguousarray(PAPER.rates[:, :2, :2, :2]))
SECONDS = 4.0


def _served(fleet: SimulatedFleet, robots: int) -> list[int]:
    """Let robots ask in closed loop; return how often each was answered, nobody with less."""
    members = [
        fleet.join(budget_ms=2000, period_ms=10, after_ms=9.0 * index) for index in range(robots)
    ]
    fleet.time.run(SECONDS)
    for member in members:
        assert {outcome.reason for outcome in member.outcomes} == {Reason.OK}
    return [len(member.outcomes) for member in members]


def _fleet(overlap: bool, concurrency: bool, rounds: bool, stages: bool) -> SimulatedFleet:
    device: Calibration = PAPER if concurrency else ONE_UNIT
    return SimulatedFleet(
        device,
        policy='fifo',
        share=None,
        overlap_preparation=overlap,
        round_barrier=rounds,
        stage_overlap=stages,
    )


@pytest.mark.parametrize('switches', list(itertools.product([False, True], repeat=4)))
def test_everybody_is_served_alike_with_any_switches(
    switches: tuple[bool, bool, bool, bool],
) -> None:
    answers = _served(_fleet(*switches), robots=6)
    assert min(answers) >= 5
    assert min(answers) >= 0.85 * max(answers)


def test_without_stage_overlap_units_of_one_stage_run_at_a_time() -> None:
    for stages in (False, True):
        fleet = _fleet(True, True, False, stages)
        _served(fleet, robots=6)
        several = {counts for counts in fleet.engine.device.seen if sum(map(bool, counts)) > 1}
        assert bool(several) is stages


def test_without_concurrency_no_stage_runs_twice_at_once() -> None:
    for concurrency in (False, True):
        fleet = _fleet(True, concurrency, False, True)
        _served(fleet, robots=6)
        assert (max(max(counts) for counts in fleet.engine.device.seen) > 1) is concurrency


def test_each_mechanism_gains_when_the_device_is_what_limits() -> None:
    """Off, C, C+M, C+M+R+G, as in figure 9 of XInfer; the simulated device, eight robots."""
    steps = [
        (False, False, True, False),
        (True, False, True, False),
        (True, True, True, False),
        (True, True, False, True),
    ]
    answers = [sum(_served(_fleet(*step), robots=8)) for step in steps]
    assert answers == sorted(answers)
    assert answers[-1] >= 1.3 * answers[0]
