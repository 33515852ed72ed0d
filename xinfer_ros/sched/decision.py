# SPDX-License-Identifier: Apache-2.0
"""Why a unit was started or left waiting, as a value that can be logged and explained."""

from collections.abc import Callable
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


def _numbered(key: int) -> str:
    return f'request {key}'


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
        return f'{self.at_ms:.1f} ms: {self.stage.name} of request {self.key} {self.reason()}'

    def reason(self, name: Callable[[int], str] = _numbered) -> str:
        """
        Return what was decided and why: the sentence without its subject.

        :param name: says who a request is
        """
        match self.verdict:
            case Verdict.ISSUED:
                return 'starts'
            case Verdict.ISSUED_PROTECTED if self.protected_at_ms is not None:
                return f'starts, protected since {self.protected_at_ms:.1f} ms'
            case Verdict.ISSUED_PROTECTED:
                return 'starts: it is urgent'
            case Verdict.DEFERRED_BATCH:
                return f'waits {self.slack:.1f} ms more for others to fill its batch'
            case Verdict.PUT_OFF:
                return (
                    'is put off: that cuts the predicted late requests from '
                    f'{self.slack:.2f} to {self.cost:.2f}'
                )
            case _:
                return self._deferral('' if self.against is None else name(self.against))

    def _deferral(self, other: str) -> str:
        match self.verdict:
            case Verdict.DEFERRED_CURRENT if self.slack < 0.0:
                return f'waits: {other} lacks {-self.slack:.1f} ms already'
            case Verdict.DEFERRED_CURRENT:
                return (
                    f'waits: it would take {self.cost:.1f} ms of the '
                    f'{self.slack:.1f} ms of slack of {other}'
                )
            case Verdict.DEFERRED_FORECAST:
                return (
                    f'waits: the request foreseen in {(self.foreseen_ms or 0.0) - self.at_ms:.1f} '
                    f'ms would need {self.cost:.1f} ms, {-self.slack:.1f} ms more than its budget'
                )
            case Verdict.DEFERRED_ROLLOUT:
                whom = f', {other} among them' if other else ''
                return (
                    f'waits: started now, {self.cost:.2f} requests are predicted late'
                    f'{whom}, {self.slack:.2f} if it waits'
                )
            case _:
                return f'waits behind {other}'
