# SPDX-License-Identifier: Apache-2.0
"""Why a unit was started or left waiting, as a value that can be logged and explained."""

from dataclasses import dataclass
from enum import IntEnum

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.core import DecisionTuple


class Verdict(IntEnum):
    """What was decided, and by which check; the numbers are those of ``src/decision.hpp``."""

    ISSUED = 0
    ISSUED_PROTECTED = 1
    DEFERRED_CURRENT = 2
    DEFERRED_FORECAST = 3
    DEFERRED_GATE = 4
    DEFERRED_ROLLOUT = 5
    PUT_OFF = 6
    DEFERRED_BATCH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    One decision about one request that was ready. Times since the first event, in ms.

    :param key: the request
    :param against: the request that the check was about, None if there was none
    :param slack: slack ``sigma`` of that request or of the forecast [ms]; for a rollout the soft
        count of late requests if the unit waits; for a batch the time it may still wait [ms]
    :param cost: what the unit would take of it [ms]; for a rollout the count if the unit starts
    :param foreseen_ms: when the foreseen request arrives, None if the check was about none
    :param protected_at_ms: since when the request is protected, None if it is not
    """

    at_ms: float
    key: int
    stage: Stage
    verdict: Verdict
    against: int | None
    slack: float
    cost: float
    foreseen_ms: float | None
    protected_at_ms: float | None

    @classmethod
    def of(cls, values: DecisionTuple) -> 'Decision':
        """Return the decision that a core has kept as plain numbers."""
        at, key, stage, verdict, against, slack, cost, foreseen, protected = values
        return cls(
            at_ms=at,
            key=key,
            stage=Stage(stage),
            verdict=Verdict(verdict),
            against=against if against >= 0 else None,
            slack=slack,
            cost=cost,
            foreseen_ms=foreseen if foreseen >= 0.0 else None,
            protected_at_ms=protected if protected >= 0.0 else None,
        )

    def explain(self) -> str:
        """Return the decision as a sentence."""
        subject = f'{self.at_ms:.1f} ms: {self.stage.name} of request {self.key}'
        match self.verdict:
            case Verdict.ISSUED:
                return f'{subject} starts'
            case Verdict.ISSUED_PROTECTED if self.protected_at_ms is not None:
                return f'{subject} starts, protected since {self.protected_at_ms:.1f} ms'
            case Verdict.ISSUED_PROTECTED:
                return f'{subject} starts: it is urgent'
            case Verdict.DEFERRED_CURRENT if self.slack < 0.0:
                return (
                    f'{subject} waits: request {self.against} lacks {-self.slack:.1f} ms already'
                )
            case Verdict.DEFERRED_CURRENT:
                return (
                    f'{subject} waits: it would take {self.cost:.1f} ms of the '
                    f'{self.slack:.1f} ms of slack of request {self.against}'
                )
            case Verdict.DEFERRED_FORECAST:
                return (
                    f'{subject} waits: the request foreseen at {self.foreseen_ms:.1f} ms would '
                    f'need {self.cost:.1f} ms, {-self.slack:.1f} ms more than its budget'
                )
            case Verdict.DEFERRED_GATE:
                return f'{subject} waits behind request {self.against}'
            case Verdict.DEFERRED_ROLLOUT:
                whom = '' if self.against is None else f', request {self.against} among them'
                return (
                    f'{subject} waits: started now, {self.cost:.2f} requests are predicted late'
                    f'{whom}, {self.slack:.2f} if it waits'
                )
            case Verdict.DEFERRED_BATCH:
                return f'{subject} waits {self.slack:.1f} ms more for others to fill its batch'
            case Verdict.PUT_OFF:
                return (
                    f'{subject} is put off: that cuts the predicted late requests from '
                    f'{self.slack:.2f} to {self.cost:.2f}'
                )
