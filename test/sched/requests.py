# SPDX-License-Identifier: Apache-2.0
"""Requests and views for the tests of the scheduler."""

from xinfer_ros.core.request import Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.policy import SchedulerView

MS = 1_000_000


def request(key: int, arrival_ns: int = 0, budget_ns: int = 180 * MS) -> Request:
    """Return a request; robot and slot follow from its key."""
    return Request(
        key=key,
        robot=key,
        slot=key,
        arrival_ns=arrival_ns,
        budget_ns=budget_ns,
        reserved_ns=4 * MS,
    )


def view(ready: dict[Stage, list[Request]], free: dict[Stage, int] | None = None) -> SchedulerView:
    """Return what a policy sees; a free place on every lane unless told otherwise."""
    return SchedulerView(
        ready={stage: ready.get(stage, []) for stage in Stage},
        running=[],
        free={stage: (free or {}).get(stage, 1) for stage in Stage},
    )
