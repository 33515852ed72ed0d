# SPDX-License-Identifier: Apache-2.0
"""What engines have counted, one life after the other, added up."""

import math
import threading
from collections import deque
from dataclasses import dataclass, field

from xinfer_ros.engine.records import Beat
from xinfer_ros.sched.decision import Verdict

ThreeInts = tuple[int, int, int]
MAX_MARKS = 2048  # of a window: beats come four times a second


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSums:
    """
    Counters that outlast an engine.

    :param busy_ns: time in which a unit of each stage was in execution [ns]
    :param verdicts: decisions by ``Verdict``
    :param prediction_error_ns: sum of the errors of predicted ends of units [ns]
    :param predictions: units in that sum
    """

    busy_ns: ThreeInts = (0, 0, 0)
    verdicts: tuple[int, ...] = (0,) * len(Verdict)
    prediction_error_ns: int = 0
    predictions: int = 0

    def plus(self, beat: Beat) -> 'EngineSums':
        """Return the sums with those of a life, as its newest beat tells them."""
        vit, prefill, action = map(sum, zip(self.busy_ns, beat.busy_ns, strict=True))
        return EngineSums(
            busy_ns=(vit, prefill, action),
            verdicts=tuple(map(sum, zip(self.verdicts, beat.verdicts, strict=True))),
            prediction_error_ns=self.prediction_error_ns + beat.prediction_error_ns,
            predictions=self.predictions + beat.predictions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """
    What the beats tell at a moment.

    :param sums: since the server began
    :param restarts: engines that ended though nobody had asked them to
    :param ended_ns: since the last of them, None if it is longer ago than the window [ns]
    :param running: units of each stage in execution
    :param waiting: requests that wait for each stage
    :param protected: requests that the scheduling policy shields
    :param occupancy: share of the window in which a unit of each stage was in execution
    :param prediction_error_ms: mean of the window [ms], NaN if nothing ended in it
    """

    sums: EngineSums = field(default_factory=EngineSums)
    restarts: int = 0
    ended_ns: int | None = None
    running: ThreeInts = (0, 0, 0)
    waiting: ThreeInts = (0, 0, 0)
    protected: int = 0
    occupancy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    prediction_error_ms: float = math.nan


class EngineTotals:
    """
    Takes in beats; thread-safe.

    :param window_ns: what occupancy and prediction error are taken over [ns]
    """

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._restarts = 0
        self._ended_at_ns: int | None = None
        self._ended = EngineSums()  # of lives that are over
        self._beat: Beat | None = None
        self._marks: deque[tuple[int, EngineSums]] = deque(maxlen=MAX_MARKS)

    def beat(self, epoch: int, beat: Beat, now_ns: int) -> None:
        """Take in a sign of life."""
        with self._lock:
            if epoch != self._epoch:
                self._ended = self._sums()
                self._epoch = epoch
            self._beat = beat
            self._marks.append((now_ns, self._sums()))

    def ended(self, now_ns: int) -> None:
        """Take in that an engine has ended by itself."""
        with self._lock:
            self._restarts += 1
            self._ended_at_ns = now_ns

    def _sums(self) -> EngineSums:
        return self._ended if self._beat is None else self._ended.plus(self._beat)

    def figures(self, now_ns: int, *, serves: bool) -> EngineFigures:
        """
        Return what is known now [ns].

        :param serves: whether there is an engine; what it was doing ends with it
        """
        with self._lock:
            while len(self._marks) > 1 and self._marks[1][0] <= now_ns - self._window_ns:
                self._marks.popleft()
            sums, beat = self._sums(), self._beat
            first_ns, first = self._marks[0] if self._marks else (now_ns, sums)
            last_ns = self._marks[-1][0] if self._marks else now_ns
            restarts, ended_at_ns = self._restarts, self._ended_at_ns
        passed_ns = max(last_ns - first_ns, 1)
        vit, prefill, action = (
            min((now - then) / passed_ns, 1.0)
            for now, then in zip(sums.busy_ns, first.busy_ns, strict=True)
        )
        units = sums.predictions - first.predictions
        error_ns = sums.prediction_error_ns - first.prediction_error_ns
        live = beat if serves else None
        ended_ns = None if ended_at_ns is None else now_ns - ended_at_ns
        return EngineFigures(
            sums=sums,
            restarts=restarts,
            ended_ns=ended_ns if ended_ns is None or ended_ns < self._window_ns else None,
            running=live.running if live else (0, 0, 0),
            waiting=live.waiting if live else (0, 0, 0),
            protected=live.protected if live else 0,
            occupancy=(vit, prefill, action),
            prediction_error_ms=error_ns / units / 1e6 if units else math.nan,
        )
