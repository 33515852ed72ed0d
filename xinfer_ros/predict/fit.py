# SPDX-License-Identifier: Apache-2.0
"""From measured times to stage times and rate table: equation 8, read backwards."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import MIN_WORK_MS
from xinfer_ros.predict.calibration_entries import ByStage, FitError
from xinfer_ros.predict.measurement import Measurements, Passage, ShortRun, Spans
from xinfer_ros.predict.rate_table import Counts, Rates

KEPT = 0.25  # share of the runs of one kind, those that were disturbed least


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFit:
    """
    One stage alone.

    :param work_ms: ``W_s`` [ms]
    :param overhead_ms: ``h_s`` [ms]
    :param low_ms: from issue to end, what one unit in ten is quicker than [ms]
    :param high_ms: what one unit in ten is slower than [ms]
    :param disturbance: median over all runs over that of the runs that are believed
    """

    work_ms: float
    overhead_ms: float
    low_ms: float
    high_ms: float
    disturbance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """
    What explains the measurements.

    :param stages: each stage alone; None for one that the model lacks
    :param rates: ``rho_s(n)``, never rising with ``n``, shape ``(3, cV + 1, cP + 1, cA + 1)``
    :param smoothing: largest relative change that this took
    :param batch_work: work of a batch of 1, 2, ... requests over that of one, of each stage
    :param infer_ms: all stages of a batch of 1, 2, ... requests [ms]
    :param fit_error: a fit to every other run against the runs between; None if there was one
        run of each kind
    """

    stages: tuple[StageFit | None, ...]
    rates: Rates
    smoothing: float
    batch_work: tuple[tuple[float, ...], ...]
    infer_ms: tuple[float, ...]
    fit_error: FitError | None

    @property
    def work_ms(self) -> ByStage:
        """Return ``W_s`` [ms]."""
        vit, prefill, action = (each.work_ms if each else MIN_WORK_MS for each in self.stages)
        return vit, prefill, action

    @property
    def overhead_ms(self) -> ByStage:
        """Return ``h_s`` [ms]."""
        vit, prefill, action = (each.overhead_ms if each else 0.0 for each in self.stages)
        return vit, prefill, action

    def predicted_ms(self, stage: Stage, counts: Counts) -> float:
        """
        Return how long a unit takes that is one of ``counts``: ``h_s + W_s / rho_s(n - e_s)``.

        Source: equation 8.
        """
        others = list(counts)
        others[stage] -= 1
        rate = self.rates[(stage, *others)]
        return float(self.overhead_ms[stage] + self.work_ms[stage] / rate)


def fit(measured: Measurements) -> Fit:
    """Return what explains all runs, and how well it would have foretold the half of them."""
    kinds = _by_kind(measured.runs)
    return _fit(measured, kinds, _fit_error(measured, kinds))


Kinds = dict[tuple[Counts, int], list[ShortRun]]


def _by_kind(runs: Iterable[ShortRun]) -> Kinds:
    kinds: Kinds = {}
    for run in runs:
        kinds.setdefault((run.counts, run.batch), []).append(run)
    return kinds


def _fit(measured: Measurements, kinds: Kinds, error: FitError | None) -> Fit:
    spans = {kind: undisturbed(runs) for kind, runs in kinds.items()}
    stages = tuple(
        _stage_fit(kinds[_alone(stage), 1], spans[_alone(stage), 1][stage], stage)
        if stage in measured.stages
        else None
        for stage in Stage
    )
    rates, smoothing = _rates(measured, stages, spans)
    return Fit(
        stages=stages,
        rates=rates,
        smoothing=smoothing,
        batch_work=tuple(_batch_work(measured, stages[stage], stage, spans) for stage in Stage),
        infer_ms=_infer_ms(measured.passages),
        fit_error=error,
    )


def undisturbed(runs: Sequence[ShortRun]) -> dict[Stage, Spans]:
    """
    Return the times of the quickest runs of one kind, together.

    Other work on the machine only ever slows a run down, so its quickest runs are those that
    tell of the device.
    """

    def slowness(run: ShortRun) -> float:
        return sum(float(np.median(spans.whole_ms)) for spans in run.spans.values())

    complete = [run for run in runs if all(len(s.whole_ms) for s in run.spans.values())]
    kept = sorted(complete or runs, key=slowness)[: max(round(KEPT * len(complete)), 1)]
    return {
        stage: Spans(
            whole_ms=np.concatenate([run.spans[stage].whole_ms for run in kept]),
            inner_ms=np.concatenate([run.spans[stage].inner_ms for run in kept]),
        )
        for stage in kept[0].spans
    }


def _alone(stage: Stage) -> Counts:
    vit, prefill, action = (int(stage is other) for other in Stage)
    return vit, prefill, action


def _stage_fit(runs: Sequence[ShortRun], spans: Spans, stage: Stage) -> StageFit:
    whole = float(np.median(spans.whole_ms))
    overhead = max(float(np.median(spans.whole_ms - spans.inner_ms)), 0.0)
    every = float(np.median(np.concatenate([run.spans[stage].whole_ms for run in runs])))
    low, high = np.quantile(spans.whole_ms, (0.1, 0.9))
    return StageFit(
        work_ms=max(whole - overhead, MIN_WORK_MS),
        overhead_ms=overhead,
        low_ms=float(low),
        high_ms=float(high),
        disturbance=every / whole,
    )


def _rates(
    measured: Measurements,
    stages: Sequence[StageFit | None],
    spans: dict[tuple[Counts, int], dict[Stage, Spans]],
) -> tuple[Rates, float]:
    """
    Return the table, and the largest relative change that made it fall with the load.

    A unit is one of the units that run, so beside ``c_s`` others of its own stage it never runs:
    that entry, for a unit that waits, is the one of ``c_s - 1``.
    """
    tables, smoothing = [], 0.0
    shape = [c + 1 for c in measured.workers]
    for stage, alone in zip(Stage, stages, strict=True):
        if alone is None:
            tables.append(np.ones(shape))
            continue
        known = [
            workers + (other is not stage) if other in measured.stages else 1
            for other, workers in zip(Stage, measured.workers, strict=True)
        ]
        rates = np.ones(known)
        for others in np.ndindex(*known):
            counts = [int(n) for n in others]
            counts[stage] += 1
            kind = ((counts[0], counts[1], counts[2]), 1)
            whole = float(np.median(spans[kind][stage].whole_ms))
            slow = max(whole - alone.overhead_ms, MIN_WORK_MS) / alone.work_ms
            rates[others] = min(1.0 / slow, 1.0)
        falling = never_rising(rates)
        smoothing = max(smoothing, float(np.abs(falling / rates - 1.0).max()))
        tables.append(
            np.pad(falling, [(0, size - has) for size, has in zip(shape, known, strict=True)],
                   mode='edge')
        )  # fmt: skip
    return np.stack(tables), smoothing


def never_rising(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """
    Return rates that never rise along any axis: another unit never makes the others faster.

    Where noise says otherwise, the rates involved meet in their (geometric) middle. Of all such
    tables it is the one whose largest relative change is least.

    :param rates: more than 0, any shape
    """
    least, most = rates, rates
    for axis in range(rates.ndim):
        least = np.minimum.accumulate(least, axis=axis)
        most = np.flip(np.maximum.accumulate(np.flip(most, axis), axis=axis), axis)
    return np.sqrt(least * most)


def _batch_work(
    measured: Measurements,
    alone: StageFit | None,
    stage: Stage,
    spans: dict[tuple[Counts, int], dict[Stage, Spans]],
) -> tuple[float, ...]:
    if alone is None:
        return (1.0,)
    times = [
        float(np.median(spans[_alone(stage), size][stage].whole_ms))
        for size in range(1, measured.batches[stage] + 1)
    ]
    work = np.array([max(ms - alone.overhead_ms, MIN_WORK_MS) / alone.work_ms for ms in times])
    rising = 1.0 / never_rising(1.0 / np.maximum(work, 1.0))
    return tuple(float(share) for share in rising)


def _infer_ms(passages: Sequence[Passage]) -> tuple[float, ...]:
    times: dict[int, list[float]] = {}
    for passage in passages:
        times.setdefault(passage.size, []).append(passage.ms)
    found = []
    for size in sorted(times):
        kept = sorted(times[size])[: max(round(KEPT * len(times[size])), 1)]
        found.append(statistics.median(kept))
    return tuple(float(ms) for ms in 1.0 / never_rising(1.0 / np.array(found))) if found else ()


def _fit_error(measured: Measurements, kinds: Kinds) -> FitError | None:
    if min(len(runs) for runs in kinds.values()) < 2:
        return None
    made = _fit(measured, {kind: runs[::2] for kind, runs in kinds.items()}, None)
    errors = []
    for (counts, batch), runs in kinds.items():
        if batch > 1:
            continue
        for stage, spans in undisturbed(runs[1::2]).items():
            true = float(np.median(spans.whole_ms))
            errors.append(abs(made.predicted_ms(stage, counts) - true) / true)
    return FitError(median=statistics.median(errors), largest=max(errors))
