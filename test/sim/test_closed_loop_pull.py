# SPDX-License-Identifier: Apache-2.0
"""How far the guidance of real-time chunking draws a plan."""

import numpy as np
import pytest

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.guidance import Schedule, guidance_gains, prefix_weights
from xinfer_ros.sim.closed_loop import Tie
from xinfer_ros.sim.closed_loop_pull import MAX_GAIN, NUM_STEPS, pulled

HORIZON = 12


def _arrays(leftover_steps: int) -> tuple[Rows, Rows]:
    random = np.random.default_rng(5)
    plan = random.normal(size=(HORIZON, 3)).astype(np.float32)
    return plan, random.normal(size=(leftover_steps, 3)).astype(np.float32)


def _euler(plan: Rows, leftover: Rows, weights: Rows, noise: Rows) -> Rows:
    """Return what the published Euler loop ends with if the model always estimates the plan."""
    padded = np.zeros_like(plan, np.float64)
    padded[: len(leftover)] = leftover
    x = noise.astype(np.float64)
    for step, gain in enumerate(guidance_gains(NUM_STEPS, MAX_GAIN)):
        velocity = (plan - x) / (1.0 - step / NUM_STEPS)
        guidance = weights[:, np.newaxis] * (padded - plan)
        x = x + (velocity + gain * guidance) / NUM_STEPS
    return x.astype(np.float32)


@pytest.mark.parametrize('frozen', [1, 4])
def test_pull_is_where_the_published_euler_loop_ends(frozen: int) -> None:
    plan, leftover = _arrays(8)
    tie = Tie(leftover=leftover, frozen_steps=frozen, executed_steps=0)
    weights = prefix_weights(HORIZON, frozen, 8, Schedule.LINEAR)
    noise = np.random.default_rng(1).normal(size=plan.shape).astype(np.float32)
    expected = _euler(plan, leftover, weights, noise)
    np.testing.assert_allclose(pulled(plan, tie)[frozen:], expected[frozen:], atol=1e-5)


def test_frozen_rows_are_those_of_the_leftover_to_the_bit() -> None:
    plan, leftover = _arrays(8)
    rows = pulled(plan, Tie(leftover=leftover, frozen_steps=5, executed_steps=0))
    assert (rows[:5] == leftover[:5]).all()
    assert (rows[8:] == plan[8:]).all()


def test_chunk_that_nothing_was_promised_is_free() -> None:
    plan, leftover = _arrays(8)
    rows = pulled(plan, Tie(leftover=leftover, frozen_steps=0, executed_steps=0))
    assert (rows == plan).all()


def test_leftover_may_be_longer_than_a_chunk() -> None:
    plan, leftover = _arrays(HORIZON + 3)
    rows = pulled(plan, Tie(leftover=leftover, frozen_steps=HORIZON, executed_steps=0))
    assert (rows == leftover[:HORIZON]).all()
