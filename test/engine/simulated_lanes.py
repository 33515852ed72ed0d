# SPDX-License-Identifier: Apache-2.0
"""Lanes of a known device, in virtual time."""

import random
from dataclasses import dataclass

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate import Slots, StageEnd
from xinfer_ros.engine.calibrate_plan import LoadPlan
from xinfer_ros.errors import ModelError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice

MS = 1_000_000


@dataclass(slots=True)
class _Running:
    stage: Stage
    slot_ids: Slots
    started_ns: int


class SimulatedLanes:
    """
    Runs units as a calibration says, and checks that stages come in order.

    :param noise: log-sd of the work of each unit
    :param disturbed: share of the time, in spans of 200 ms, in which all work takes twice as long
    """

    def __init__(
        self,
        truth: Calibration,
        plan: LoadPlan,
        clock: SimulatedClock,
        *,
        noise: float = 0.0,
        disturbed: float = 0.0,
    ) -> None:
        self._truth, self._plan, self._clock = truth, plan, clock
        self._noise, self._disturbed = noise, disturbed
        self._random = random.Random(1)
        self._device = SimulatedDevice(truth.rates)
        self._running: dict[int, _Running] = {}
        self._number = 0
        self._done: list[set[Stage]] = [set() for _ in range(plan.num_slots)]
        self.most = {stage: 0 for stage in Stage}

    def issue(self, stage: Stage, slot_ids: Slots) -> None:
        """Start a unit."""
        for slot in slot_ids:
            earlier = {other for other in self._plan.stages if other < stage}
            if self._done[slot] != earlier and stage is not self._plan.stages[0]:
                raise ModelError(f'{stage.name} of slot {slot} came out of order')
        now_ns, truth = self._clock.now_ns(), self._truth
        self._number += 1
        work_ms = truth.work_ms[stage] * truth.batch_work[stage][len(slot_ids) - 1]
        work_ms *= self._random.lognormvariate(0.0, self._noise)
        if random.Random(now_ns // (200 * MS)).random() < self._disturbed:
            work_ms *= 2.0
        begin_ns = now_ns + round(truth.overhead_ms[stage] * MS)
        unit = Executing(number=self._number, stage=stage, begin_ns=begin_ns, left_ms=work_ms)
        self._device.start(now_ns, [unit])
        self._running[self._number] = _Running(stage, slot_ids, begin_ns)
        beside = sum(unit.stage is stage for unit in self._running.values())
        self.most[stage] = max(self.most[stage], beside)

    def next_end(self) -> StageEnd:
        """Move the clock to the next end."""
        end_ns = self._device.next_end_ns
        assert end_ns is not None, 'nothing runs'
        self._clock.advance(end_ns - self._clock.now_ns())
        unit = self._running.pop(self._device.end_next())
        for slot in unit.slot_ids:
            done = self._done[slot]
            if unit.stage is self._plan.stages[0]:
                done.clear()
            done.add(unit.stage)
        return StageEnd(
            stage=unit.stage,
            slot_ids=unit.slot_ids,
            started_ns=unit.started_ns,
            ended_ns=end_ns,
        )
