# SPDX-License-Identifier: Apache-2.0
"""How good predictions were: a finished round is replayed, and every forecast meets the truth."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.progress import Predictor, Progress

Transitions = npt.NDArray[np.int64]
TIME, UNIT, STAGE, COUNT, STARTED = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """
    Predictions of the remaining time of running units, in the order in which they were made.

    :param at_ns: when each was made, shape ``(n,)`` int64 [ns]
    :param unit: number of the unit, shape ``(n,)`` int64
    :param stage: its stage, shape ``(n,)`` int64
    :param remaining_ms: what was predicted, shape ``(n,)`` [ms]
    """

    at_ns: npt.NDArray[np.int64]
    unit: npt.NDArray[np.int64]
    stage: npt.NDArray[np.int64]
    remaining_ms: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """
    Errors of the predictions whose unit was seen to end.

    :param at_ns: when each prediction was made, shape ``(n,)`` int64 [ns]
    :param stage: stage of its unit, shape ``(n,)`` int64
    :param error_ms: predicted less true remaining time, shape ``(n,)`` [ms]
    """

    at_ns: npt.NDArray[np.int64]
    stage: npt.NDArray[np.int64]
    error_ms: npt.NDArray[np.float64]

    def mae_ms(self, stage: Stage | None = None) -> float:
        """
        Return the mean absolute error, of all or of one stage [ms].

        :raises ValueError: if nothing was predicted
        """
        return float(np.abs(self._of(stage)).mean())

    def bias_ms(self, stage: Stage | None = None) -> float:
        """
        Return the mean error: more than 0 if units end sooner than predicted [ms].

        :raises ValueError: if nothing was predicted
        """
        return float(self._of(stage).mean())

    def _of(self, stage: Stage | None) -> npt.NDArray[np.float64]:
        errors = self.error_ms if stage is None else self.error_ms[self.stage == stage]
        if not len(errors):
            raise ValueError(f'no prediction of {"any stage" if stage is None else stage.name}')
        return errors


def replay(transitions: Transitions, calibration: Calibration) -> Predictions:
    """
    Predict again at every transition what each running unit still needs.

    Causal: rows are read once, in order; a prediction depends on no later one. The time runs as in
    the scheduler: progress under the counts observed (equation 9), no online correction.

    :param transitions: rows time [ns], unit, stage, size of the batch, 1 if it starts and 0 if it
        is seen to end; shape ``(m, 5)`` int64, by time
    """
    predictor = Predictor(calibration)
    running: dict[int, Progress] = {}
    counts = [0 for _ in Stage]
    made: list[tuple[int, int, int]] = []
    remaining_ms: list[float] = []
    origin_ns = int(transitions[0, TIME]) if len(transitions) else 0
    before_ms = 0.0
    for at_ns, rows in groupby(transitions.tolist(), key=lambda row: int(row[TIME])):
        now_ms = (at_ns - origin_ns) * 1e-6
        load = predictor.load(counts)
        for progress in running.values():
            progress.advance(before_ms, now_ms, load.rate[progress.stage])
        before_ms = now_ms
        for _, unit, stage, count, started in rows:
            if started:
                running[unit] = Progress(
                    stage=stage,
                    begin_ms=now_ms + calibration.overhead_ms[stage],
                    work_ms=predictor.work_ms(stage, count),
                )
            else:
                del running[unit]
            counts[stage] += 1 if started else -1
        load = predictor.load(counts)
        for unit, progress in running.items():
            made.append((at_ns, unit, progress.stage))
            remaining_ms.append(progress.residual_ms(now_ms, load))
    columns = np.array(made, dtype=np.int64).reshape(-1, 3)
    return Predictions(
        at_ns=columns[:, 0],
        unit=columns[:, 1],
        stage=columns[:, 2],
        remaining_ms=np.array(remaining_ms, dtype=np.float64),
    )


def audit(transitions: Transitions, calibration: Calibration) -> Audit:
    """
    Compare every prediction of a round with when its unit was seen to end.

    :param transitions: as ``replay`` takes them
    """
    predictions = replay(transitions, calibration)
    ends = transitions[transitions[:, STARTED] == 0]
    end_ns = np.full(int(transitions[:, UNIT].max(initial=0)) + 1, -1, dtype=np.int64)
    end_ns[ends[:, UNIT]] = ends[:, TIME]
    seen = end_ns[predictions.unit] >= 0
    at_ns = predictions.at_ns[seen]
    true_ms = (end_ns[predictions.unit[seen]] - at_ns) / 1e6
    return Audit(
        at_ns=at_ns,
        stage=predictions.stage[seen],
        error_ms=predictions.remaining_ms[seen] - true_ms,
    )
