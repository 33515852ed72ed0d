# SPDX-License-Identifier: Apache-2.0
"""First in, first out: requests in the order of their arrival, one a unit."""

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.policy import SchedulerView, Work

STAGE_ORDER = (Stage.ACTION, Stage.PREFILL, Stage.VIT)


class Fifo:
    """Arrival order on every lane; deadlines are ignored. One of the baselines of XInfer."""

    def choose(self, view: SchedulerView, now_ns: int) -> Work | None:
        """Return the oldest request that is ready for a free lane, later stages first."""
        for stage in STAGE_ORDER:
            if view.free[stage] > 0 and view.ready[stage]:
                oldest = min(view.ready[stage], key=lambda request: request.key)
                return Work(stage=stage, requests=(oldest,))
        return None
