# SPDX-License-Identifier: Apache-2.0
"""The protocol of a scheduling policy, and the state that it sees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    The next unit that a scheduling policy wants to start.

    :param stage: its stage
    :param requests: its requests, all of them ready for the stage
    """

    stage: Stage
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerView:
    """
    What a scheduling policy sees.

    :param ready: requests that wait for each stage, in the order in which they became ready
    :param running: units in execution
    :param free: units that may still start on each lane
    """

    ready: Mapping[Stage, Sequence[Request]]
    running: Sequence[Unit]
    free: Mapping[Stage, int]


class SchedulingPolicy(Protocol):
    """Chooses what starts next; pure: no clock, no thread, no state that outlives a request."""

    def choose(self, view: SchedulerView, now_ns: int) -> Work | None:
        """
        Return the unit to start now, None to leave the rest waiting.

        Called again after every launch, until it returns None.

        :param view: state of the scheduler; only requests ready for a free lane may be named
        :param now_ns: present time [ns]
        """
        ...
