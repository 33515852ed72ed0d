# SPDX-License-Identifier: Apache-2.0
"""Whole-pipeline batches chosen by whose turn it is, or by who runs dry soonest."""

from xinfer_ros.sched.reference.group import WholePipeline
from xinfer_ros.sched.reference.state import Request, State


class RoundRobin(WholePipeline):
    """The next robots in a fixed order."""

    def __init__(self, state: State, max_batch: int) -> None:
        super().__init__(state, max_batch)
        self._next = 0  # robot

    def pick(self, most: int) -> list[Request]:
        """Return those whose turn it is."""
        robots = len(self.state.robots)
        turn = sorted(self.by_arrival(), key=lambda r: (r.robot - self._next + robots) % robots)
        chosen = turn[:most]
        self._next = (chosen[-1].robot + 1) % robots
        return chosen


class DryFirst(WholePipeline):
    """Those whose rows are used up soonest; Armory's earliest deadline."""

    def pick(self, most: int) -> list[Request]:
        """Return those that run dry first; who has told nothing, by its arrival."""
        return sorted(self.by_arrival(), key=self._dry_at)[:most]

    def _dry_at(self, request: Request) -> float:
        mirror = self.state.mirrors[request.robot]
        return mirror.dry_at if mirror.known else request.arrival
