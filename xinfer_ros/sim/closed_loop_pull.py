# SPDX-License-Identifier: Apache-2.0
"""How far real-time chunking's guidance draws a plan to the leftover, without a network."""

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.guidance import Schedule, guidance_gains, prefix_weights
from xinfer_ros.sim.closed_loop import Tie

#: Euler steps of the model that is stood in for, and the limit of its guidance gain.
NUM_STEPS, MAX_GAIN = 10, 5.0


def pulled(plan: Rows, tie: Tie, schedule: Schedule = Schedule.LINEAR) -> Rows:
    """
    Return a plan as the published guidance leaves it; frozen rows are those of the leftover.

    For a model that is sure of its plan the estimate of the chunk is the plan at every Euler
    step, so that each step but the last is forgotten and what is left of the guidance is
    ``W gamma(K-1) / K`` of the way to the leftover. A chunk that nothing was promised is free.

    :param plan: ``(H, num_joints)``
    :param tie: with the leftover
    :returns: ``(H, num_joints)`` float32
    Source: Real-time chunking, algorithm 1, with the identity in place of the Jacobian.
    """
    rows = plan.astype(np.float32)
    frozen, end = tie.frozen_steps, min(len(tie.leftover), len(rows))
    if frozen == 0:
        return rows
    weights = prefix_weights(len(rows), min(frozen, end), end, schedule)[:end, np.newaxis]
    share = guidance_gains(NUM_STEPS, MAX_GAIN)[-1] / NUM_STEPS
    rows[:end] += np.float32(share) * weights * (tie.leftover[:end] - rows[:end])
    rows[:frozen] = tie.leftover[:frozen]
    return rows
