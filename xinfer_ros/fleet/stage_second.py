# SPDX-License-Identifier: Apache-2.0
"""One second of an engine's life, unit by unit, and how well its ends were foreseen."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.audit import CHANGE, STAGE, TIME, UNIT, audit
from xinfer_ros.predict.run_record import Change, RecordedRun

Errors = Mapping[Stage, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitBar:
    """
    A unit within a span of time.

    :param row: which of the bars of a stage that overlap it is, from 0
    :param from_ms: after the beginning of the span, its own start or 0 [ms]
    :param to_ms: its end, or that of the span [ms]
    :param robots: numbers of the robots whose requests it holds
    """

    stage: Stage
    row: int
    from_ms: float
    to_ms: float
    robots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSecond:
    """
    What the lanes did in a span of time.

    :param length_ms: of the span [ms]
    """

    length_ms: float
    bars: tuple[UnitBar, ...]

    @property
    def busy(self) -> dict[Stage, float]:
        """Return the share of the span in which each stage was at work."""
        return {stage: self._busy(stage) for stage in Stage if self._of(stage)}

    def _of(self, stage: Stage) -> list[UnitBar]:
        return [bar for bar in self.bars if bar.stage is stage]

    def _busy(self, stage: Stage) -> float:
        covered_ms, until_ms = 0.0, 0.0
        for bar in sorted(self._of(stage), key=lambda each: each.from_ms):
            covered_ms += max(bar.to_ms - max(bar.from_ms, until_ms), 0.0)
            until_ms = max(until_ms, bar.to_ms)
        return covered_ms / self.length_ms


def stage_second(run: RecordedRun, from_ns: int, length_ns: int = 1_000_000_000) -> StageSecond:
    """
    Return what the lanes did from a time on.

    :param from_ns: monotonic clock of the engine's machine [ns]
    """
    robots: dict[int, list[int]] = {}
    for unit, _, robot in run.members.tolist():
        robots.setdefault(unit, []).append(robot)
    begun: dict[int, tuple[int, int]] = {}
    spans: list[tuple[int, int, int, int]] = []
    for row in run.transitions.tolist():
        unit, at_ns = row[UNIT], row[TIME]
        if row[CHANGE] == Change.STARTED:
            begun[unit] = (at_ns, row[STAGE])
        elif unit in begun:
            started_ns, stage = begun.pop(unit)
            spans.append((started_ns, at_ns, stage, unit))
    spans += [
        (started_ns, from_ns + length_ns, stage, u) for u, (started_ns, stage) in begun.items()
    ]
    inside = sorted(s for s in spans if s[1] > from_ns and s[0] < from_ns + length_ns)
    free_ns: dict[int, list[int]] = {}
    bars = []
    for started_ns, ended_ns, stage, unit in inside:
        bars.append(
            UnitBar(
                stage=Stage(stage),
                row=_first_free(free_ns.setdefault(stage, []), started_ns, ended_ns),
                from_ms=max(started_ns - from_ns, 0) / 1e6,
                to_ms=min(ended_ns - from_ns, length_ns) / 1e6,
                robots=tuple(robots.get(unit, ())),
            )
        )
    return StageSecond(length_ms=length_ns / 1e6, bars=tuple(bars))


def _first_free(free_ns: list[int], started_ns: int, ended_ns: int) -> int:
    """Return the first row whose last bar has ended, and put this one there."""
    for row, until_ns in enumerate(free_ns):
        if until_ns <= started_ns:
            free_ns[row] = ended_ns
            return row
    free_ns.append(ended_ns)
    return len(free_ns) - 1


def prediction_errors(run: RecordedRun, from_ns: int, to_ns: int) -> Errors:
    """
    Return the errors of the predicted remaining time by stage, predicted less true [ms].

    :param from_ns: predictions from here on count [ns]
    :param to_ns: to here [ns]
    """
    found = audit(run.transitions, run.calibration)
    counts = (found.at_ns >= from_ns) & (found.at_ns < to_ns)
    by_stage = {stage: found.error_ms[counts & (found.stage == stage)] for stage in Stage}
    return {stage: errors for stage, errors in by_stage.items() if len(errors)}
