# SPDX-License-Identifier: Apache-2.0
"""The baselines: arrival order, deadline order, and deadline order behind a slack gate."""

from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.reference.policy import STAGE_ORDER, Policy
from xinfer_ros.sched.reference.state import Request, State


class Fifo(Policy):
    """Arrival order on every lane; deadlines are ignored."""

    def choose(self) -> None:
        """Start the oldest of each stage while its lane has room."""
        for stage in STAGE_ORDER:
            while self.state.has_room(stage) and self.state.ready[stage]:
                oldest = min(self.state.ready[stage], key=lambda request: request.key)
                self.launch([oldest], Verdict.ISSUED)


class Edf(Policy):
    """Earliest deadline first on every lane, within the limit of each."""

    def choose(self) -> None:
        """Start the first due of each stage while its lane has room."""
        for stage in STAGE_ORDER:
            while self.state.has_room(stage) and self.state.ready[stage]:
                self.launch([self.state.ready[stage][0]], Verdict.ISSUED)


class SlackGate(Policy):
    """
    Earliest deadline first; while a live request is short of slack, the others wait.

    :param threshold: slack below which a request is short of it, under the running load
        (reading 16)
    """

    def __init__(self, state: State, threshold: float) -> None:
        super().__init__(state)
        self._threshold = threshold

    def choose(self) -> None:
        """Start what the gate lets pass, and look again at the whole queue after each start."""
        for stage in STAGE_ORDER:
            while self.state.has_room(stage) and self._start_one(self.state.ready[stage]):
                pass

    def shields(self, request: Request) -> bool:
        """Return whether a request is short of slack."""
        load = self.state.predictor.load(self.state.running)
        return self.state.slack(load, request) < self._threshold

    def _start_one(self, queue: list[Request]) -> bool:
        load = self.state.predictor.load(self.state.running)
        slack = {request.key: self.state.slack(load, request) for request in self.state.live}
        shortest = min(slack, key=slack.__getitem__, default=-1)
        for request in queue:
            is_short = slack[request.key] < self._threshold
            if is_short or slack[shortest] >= self._threshold:
                self.launch([request], Verdict.ISSUED_PROTECTED if is_short else Verdict.ISSUED)
                return True
            self.note(request, Verdict.DEFERRED_GATE, against=shortest, slack=slack[shortest])
        return False
