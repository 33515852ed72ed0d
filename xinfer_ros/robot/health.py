# SPDX-License-Identifier: Apache-2.0
"""How a robot is, in one line: what an operator must know first."""

from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason

STILL_NS = 2_000_000_000  # time without motion after which a model is said to output none
STILL_MOTION = 0.005  # path of the joint that moves most, in a second, that is none [rad; m]
MISSED_SHARE = 0.05  # of the ticks since the last look


class Health:
    """Looks at one report after the other; tells a model without motion from a missing chunk."""

    def __init__(self) -> None:
        self._still_since_ns: int | None = None
        self._refused = ''
        self._last = RobotReport()

    def judge(
        self, report: RobotReport, now_ns: int, *, notice: str, refusal: str, stalled_ns: int
    ) -> Verdict:
        """
        Return the first of the troubles that there are.

        :param now_ns: steady clock [ns]
        :param notice: why the robot can't ask at present, empty if it can
        :param refusal: why the latest answer was without rows or refused, in words
        :param stalled_ns: how late the control thread is, 0 unless it stalls [ns]
        """
        last, self._last = self._last, report
        is_still = self._is_still(report, now_ns)
        self._note_refusals(report, last, refusal)
        if stalled_ns:
            text = f'the control thread stalls, {stalled_ns / 1e9:.2f} s late'
            return Verdict(level=Level.ERROR, text=text)
        if report.phase is ExecutorPhase.STOPPED:
            return Verdict(level=Level.OK, text='inactive: nothing is commanded')
        if notice:
            return Verdict(level=Level.WARN, text=notice)
        if report.phase is not ExecutorPhase.RUNNING:
            why = (report.hold or report.phase.name, self._refused)
            return Verdict(level=Level.WARN, text=': '.join(part for part in why if part))
        limits = Reason.REJECTED_LIMITS
        if report.reasons[limits] > last.reasons[limits]:
            return Verdict(level=Level.WARN, text=self._refused)
        if is_still:
            return Verdict(level=Level.WARN, text='the model outputs no motion')
        missed = report.overruns - last.overruns
        if missed > MISSED_SHARE * max(report.ticks - last.ticks, 1):
            return Verdict(level=Level.WARN, text=f'{missed} control ticks were missed')
        return Verdict(level=Level.OK, text=report.phase.name)

    def _note_refusals(self, report: RobotReport, last: RobotReport, refusal: str) -> None:
        """Remember why there is no chunk, until one comes."""
        risen = [r for r, count in report.reasons.items() if count > last.reasons[r]]
        if risen:
            self._refused = f'{risen[-1].name}: {refusal}'
        elif report.chunks > last.chunks:
            self._refused = ''

    def _is_still(self, report: RobotReport, now_ns: int) -> bool:
        if report.phase is not ExecutorPhase.RUNNING or report.motion >= STILL_MOTION:
            self._still_since_ns = None
        elif self._still_since_ns is None:
            self._still_since_ns = now_ns
        return self._still_since_ns is not None and now_ns - self._still_since_ns > STILL_NS
