# SPDX-License-Identifier: Apache-2.0
"""The protocol of a scheduling policy, and how one keeps its decisions."""

import abc
from collections.abc import Sequence

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.core import DecisionTuple
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.reference.state import Request, State, Unit

STAGE_ORDER = (Stage.ACTION, Stage.PREFILL, Stage.VIT)  # who is nearest to its end goes first


class Policy(abc.ABC):
    """
    Chooses what starts.

    :param state: that it starts units of
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.log: list[DecisionTuple] | None = None
        self.verdicts = [0 for _ in Verdict]
        self._started: list[Unit] = []

    @abc.abstractmethod
    def choose(self) -> None:
        """Start what may start now."""

    def pace(self, robot: int) -> float:
        """
        Return the time between the arrivals of a robot that suits the fleet, 0 to leave it to it.

        Called when the last stage of the robot's request has ended.
        """
        return 0.0

    @property
    def holds_back(self) -> bool:
        """Return whether answers of requests that end are held back until ``releases``."""
        return False

    def releases(self) -> bool:
        """Return whether what was held back may leave."""
        return True

    def shields(self, request: Request) -> bool:
        """Return whether a live request is shielded from the others."""
        return False

    def dispatch(self, now: float) -> list[Unit]:
        """Start what may start now; return the units in the order of their start."""
        self._started = []
        self.state.advance(now)
        self.choose()
        return self._started

    def launch(self, members: Sequence[Request], verdict: Verdict) -> None:
        """Start a unit."""
        for request in members:
            self.note(request, verdict)
        self._started.append(self.state.start(members))

    def note(
        self,
        request: Request,
        verdict: Verdict,
        *,
        against: int | None = None,
        slack: float = 0.0,
        cost: float = 0.0,
        foreseen: float | None = None,
    ) -> None:
        """Count a decision and, if decisions are kept, keep it, as the fields of ``Decision``."""
        self.verdicts[verdict] += request.told != (request.stage, verdict)
        request.told = request.stage, verdict
        if self.log is None:
            return
        promoted_at = request.promoted_at
        self.log.append(
            (
                self.state.now, request.key, int(request.stage), int(verdict),
                -1 if against is None else against, slack, cost,
                -1.0 if foreseen is None else foreseen,
                -1.0 if promoted_at is None else promoted_at,
            )
        )  # fmt: skip
