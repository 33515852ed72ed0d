# SPDX-License-Identifier: Apache-2.0
"""How good predictions were: a finished round is replayed, and every forecast meets the truth."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.progress import Predictor, Progress
from xinfer_ros.predict.run_record import Change

Transitions = npt.NDArray[np.int64]
TIME, UNIT, STAGE, COUNT, CHANGE = range(5)


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
class LeftOut:
    """
    Units whose predictions do not count.

    :param failed: they failed
    :param unended: they were still running at the end
    :param early: they started before the record begins
    """

    failed: int
    unended: int
    early: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """
    Errors of the predictions whose unit was seen to end.

    :param at_ns: when each prediction was made, shape ``(n,)`` int64 [ns]
    :param unit: number of its unit, shape ``(n,)`` int64
    :param stage: stage of its unit, shape ``(n,)`` int64
    :param error_ms: predicted less true remaining time, shape ``(n,)`` [ms]
    :param stage_ms: time that the unit took from its start to its end, shape ``(n,)`` [ms]
    :param left_out: units that are not in here
    """

    at_ns: npt.NDArray[np.int64]
    unit: npt.NDArray[np.int64]
    stage: npt.NDArray[np.int64]
    error_ms: npt.NDArray[np.float64]
    stage_ms: npt.NDArray[np.float64]
    left_out: LeftOut

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


def replay(
    transitions: Transitions, calibration: Calibration, *, learning_rate: float = 0.0
) -> Predictions:
    """
    Predict again at every transition what each running unit still needs.

    Causal: rows are read once, in order; a prediction depends on no later one. The time runs as in
    the scheduler: progress under the counts observed (equation 9), and the online correction of
    stage times, if it is asked for.

    :param transitions: rows time [ns], unit, stage, size of the batch, ``Change``: 1 if it starts,
        0 if it is seen to end, -1 if it is seen to have failed; shape ``(m, 5)`` int64, by time
    :param learning_rate: of the online correction, 0 to trust the calibration
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
        for _, unit, stage, count, change in rows:
            if change == Change.STARTED:
                running[unit] = Progress(
                    stage=stage,
                    begin_ms=now_ms + calibration.overhead_ms[stage],
                    work_ms=predictor.work_ms(stage, count),
                )
                counts[stage] += 1
                continue
            counts[stage] -= 1
            done_ms = running.pop(unit).done_ms
            if change == Change.ENDED:
                predictor.learn(stage, count, done_ms, learning_rate)
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


def audit(
    transitions: Transitions,
    calibration: Calibration,
    *,
    learning_rate: float = 0.0,
    from_ns: int | None = None,
) -> Audit:
    """
    Compare every prediction of a round with when its unit was seen to end.

    :param transitions: as ``replay`` takes them
    :param learning_rate: of the online correction, 0 to trust the calibration
    :param from_ns: units that started earlier are left out: what ran beside them is not known [ns]
    """
    predictions = replay(transitions, calibration, learning_rate=learning_rate)
    units = np.unique(transitions[:, UNIT])
    time_ns = {}
    for change in Change:
        rows = transitions[transitions[:, CHANGE] == change]
        time_ns[change] = np.full(len(units), -1, dtype=np.int64)
        time_ns[change][np.searchsorted(units, rows[:, UNIT])] = rows[:, TIME]
    start_ns, end_ns = time_ns[Change.STARTED], time_ns[Change.ENDED]
    has_failed = time_ns[Change.FAILED] >= 0
    is_early = start_ns < (from_ns if from_ns is not None else 0)
    place = np.searchsorted(units, predictions.unit)
    seen = ((end_ns >= 0) & ~is_early)[place]
    place, at_ns = place[seen], predictions.at_ns[seen]
    return Audit(
        at_ns=at_ns,
        unit=predictions.unit[seen],
        stage=predictions.stage[seen],
        error_ms=predictions.remaining_ms[seen] - (end_ns[place] - at_ns) / 1e6,
        stage_ms=(end_ns[place] - start_ns[place]) / 1e6,
        left_out=LeftOut(
            failed=int((has_failed & ~is_early).sum()),
            unended=int(((end_ns < 0) & ~has_failed & ~is_early).sum()),
            early=int(is_early.sum()),
        ),
    )
