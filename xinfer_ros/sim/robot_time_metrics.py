# SPDX-License-Identifier: Apache-2.0
"""What a round in robot time came to: who stood still, and what the device gained for whom."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from xinfer_ros.sim.metrics import RoundMetrics, jain

RowCounts = npt.NDArray[np.float64]
# of each robot, from the end of the warm-up on; DEVICE is the busy time of the whole device [ms]
TICKS, STARVED, EXECUTED, OBSERVATIONS, ERROR_SUM, ERROR_MAX, DEVICE = range(7)


def with_rows(
    found: RoundMetrics, rows: RowCounts, execution_steps: npt.NDArray[np.int64]
) -> RoundMetrics:
    """
    Return what a round came to with starvation and fairness by rows.

    :param found: by responses
    :param rows: shape ``(robots, 7)``
    :param execution_steps: that a chunk of each robot is good for, shape ``(robots,)``
    """
    fast = execution_steps == execution_steps.min()
    observations = max(rows[:, OBSERVATIONS].sum(), 1.0)
    return replace(
        found,
        starvation=_starvation(rows),
        fast_starvation=_starvation(rows[fast]),
        slow_starvation=None if fast.all() else _starvation(rows[~fast]),
        fairness=jain(rows[:, EXECUTED] / np.maximum(rows[:, TICKS], 1.0)),
        steps_per_device_s=float(1e3 * rows[:, EXECUTED].sum() / max(rows[0, DEVICE], 1e-6)),
        mirror_error_steps=float(rows[:, ERROR_SUM].sum() / observations),
    )


def _starvation(rows: RowCounts) -> float:
    """Return the mean over robots of the share of their ticks that were starved."""
    return float((rows[:, STARVED] / np.maximum(rows[:, TICKS], 1.0)).mean())
