# SPDX-License-Identifier: Apache-2.0
"""Measures a device under every load that its calibration shall tell of: many short runs."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate_plan import Load, LoadPlan
from xinfer_ros.errors import ModelError
from xinfer_ros.predict.measurement import Measurements, Passage, ShortRun, Spans

TRIES = 8
Slots = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """
    A unit that has ended.

    :param slot_ids: slots of its requests
    :param started_ns: when the lane began it [ns]
    :param ended_ns: when it was complete [ns]
    """

    stage: Stage
    slot_ids: Slots
    started_ns: int
    ended_ns: int


class Lanes(Protocol):
    """A model on its lanes, with requests in its slots."""

    def issue(self, stage: Stage, slot_ids: Slots) -> None:
        """Hand a unit to the lane of a stage that has a free worker; returns at once."""
        ...

    def next_end(self) -> StageEnd:
        """
        Wait for the next unit that ends.

        :raises ModelError: if it has failed
        """
        ...


class _Flow:
    """
    The units of one run: one that ends is followed by another of its stage.

    :param units: slots of each unit by stage
    :param left: units that each stage may run; a stage that is not in it has no end
    """

    def __init__(
        self,
        lanes: Lanes,
        clock: Clock,
        units: dict[Stage, deque[Slots]],
        left: dict[Stage, int],
    ) -> None:
        self._lanes, self._clock = lanes, clock
        self._waiting, self._left = units, left
        self._issued_ns: dict[Slots, int] = {}
        self.is_full = True  # until a stage has run all that it may: then less runs side by side

    def issue(self, stage: Stage) -> None:
        """Issue the next unit of a stage, or take in that there is none."""
        if stage in self._left:
            self.is_full &= self._left[stage] > 0
            self._left[stage] -= 1
        if not self.is_full:
            return
        unit = self._waiting[stage].popleft()
        self._issued_ns[unit] = self._clock.now_ns()
        self._lanes.issue(stage, unit)

    def next_end(self) -> tuple[StageEnd, int]:
        """Wait for a unit; return it and the time since its issue [ns]."""
        end = self._lanes.next_end()
        whole_ns = self._clock.now_ns() - self._issued_ns.pop(end.slot_ids)
        if end.stage is Stage.VIT:
            self._waiting[end.stage].append(end.slot_ids)
        return end, whole_ns

    def drain(self) -> None:
        """Wait for what is still running."""
        while self._issued_ns:
            self.next_end()


class LoadBench:
    """
    Puts loads on lanes.

    :param lanes: with ``plan.num_slots`` slots
    :param clock: the clock of the lanes
    :param plan: of the lanes' stages
    """

    def __init__(self, lanes: Lanes, clock: Clock, plan: LoadPlan) -> None:
        self._lanes, self._clock, self._plan = lanes, clock, plan
        self._slots = plan.slots()

    def run(self, load: Load) -> ShortRun:
        """
        Keep units in flight until a stage has run all that it shall.

        A run in which another stage has not ended a single unit tells nothing of it, and is made
        again: something else kept the machine busy.

        :raises ModelError: if that happens time and again
        """
        for _ in range(TRIES):
            found = self._run(load)
            if all(len(spans.whole_ms) for spans in found.spans.values()):
                return found
        raise ModelError(
            f'in {TRIES} runs of {load.counts} units at once a stage has not ended a single one: '
            'the machine is too busy, or the stages differ too much to be measured side by side'
        )

    def _run(self, load: Load) -> ShortRun:
        counts = dict(zip(Stage, load.counts, strict=True))
        units = {stage: self._units(stage, load) for stage in Stage if counts[stage]}
        left = {s: load.units(s) for s in units if s is not Stage.VIT or len(units) == 1}
        flow = _Flow(self._lanes, self._clock, units, left)
        for stage in units:
            for _ in range(counts[stage]):
                flow.issue(stage)
        spans: dict[Stage, list[tuple[int, int]]] = {stage: [] for stage in units}
        while flow.is_full:
            end, whole_ns = flow.next_end()
            spans[end.stage].append((whole_ns, end.ended_ns - end.started_ns))
            flow.issue(end.stage)
        flow.drain()
        return ShortRun(
            counts=load.counts,
            batch=load.batch,
            spans={stage: _spans(found) for stage, found in spans.items()},
        )

    def passage(self, size: int) -> Passage:
        """Take a batch through all stages; a stage with a smaller limit takes several units."""
        slots = self._slots[Stage.ACTION][:size]
        begin_ns = self._clock.now_ns()
        for stage in self._plan.stages:
            self._run_all(stage, slots)
        return Passage(size=size, ms=(self._clock.now_ns() - begin_ns) / 1e6)

    def _units(self, stage: Stage, load: Load) -> deque[Slots]:
        """Return the slots of each unit of a run, taken through the stages before."""
        count = load.counts[stage] if stage is Stage.VIT else load.units(stage)
        slots, size = self._slots[stage][: count * load.batch], load.batch
        for earlier in self._plan.stages:
            if earlier < stage:
                self._run_all(earlier, slots)
        return deque(tuple(slots[i : i + size]) for i in range(0, len(slots), size))

    def _run_all(self, stage: Stage, slots: list[int]) -> None:
        """Run a stage for some slots, one unit after the other."""
        most = self._plan.batches[stage]
        for first in range(0, len(slots), most):
            self._lanes.issue(stage, tuple(slots[first : first + most]))
            self._lanes.next_end()


def _spans(found: list[tuple[int, int]]) -> Spans:
    columns = np.array(found, dtype=np.float64).reshape(-1, 2) / 1e6
    return Spans(whole_ms=columns[:, 0], inner_ms=columns[:, 1])


def measure(
    lanes: Lanes,
    clock: Clock,
    plan: LoadPlan,
    rounds: int,
    seed: int,
    done: Callable[[], None] = lambda: None,
) -> Measurements:
    """
    Measure every load of a plan.

    Each round makes one short run of each kind, in an order of its own, so that whatever else
    happens on the machine for a while meets all kinds alike.

    :param lanes: with ``plan.num_slots`` slots
    :param plan: of the lanes' stages
    :param seed: of the orders
    :param done: called after each run
    """
    order = random.Random(seed)
    bench, runs, passages = LoadBench(lanes, clock, plan), list[ShortRun](), list[Passage]()
    loads = plan.loads()
    for _ in range(rounds):
        for load in order.sample(loads, len(loads)):
            runs.append(bench.run(load))
            done()
        for size in plan.passages():
            passages.append(bench.passage(size))
            done()
    return Measurements(
        stages=plan.stages,
        workers=plan.workers,
        batches=plan.batches,
        runs=tuple(runs),
        passages=tuple(passages),
    )
