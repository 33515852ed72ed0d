# SPDX-License-Identifier: Apache-2.0
"""A model on real lanes, with requests that no robot has sent."""

import queue

import numpy as np

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate import Slots, StageEnd
from xinfer_ros.engine.calibrate_plan import LoadPlan
from xinfer_ros.engine.lane import Lane, UnitEnd
from xinfer_ros.engine.sample_robot import COMMITMENT_STEPS, INSTRUCTION
from xinfer_ros.errors import ModelError
from xinfer_ros.models.adapter import StagedModel, write_sample


class ModelLanes:
    """
    Runs units of a model; every request has a commitment and a leftover, as in service.

    :param model: freshly made; it is bound and warmed up here
    :param plan: of its stages
    :param clock: for the lanes
    :raises ModelError: if the model cannot be warmed up
    """

    def __init__(self, model: StagedModel, plan: LoadPlan, clock: Clock) -> None:
        count = plan.num_slots
        slots = slot_arrays(
            model.contract,
            count,
            memoryview(bytearray(slot_memory_bytes(model.contract, count))),
        )
        model.bind(
            slots,
            LanePlan(workers=plan.workers, max_batch=plan.batches, num_states=count),
        )
        model.warm_up()
        commitment = min(COMMITMENT_STEPS, model.contract.max_commitment_steps)
        for slot in range(count):
            write_sample(slots, slot, INSTRUCTION)
            slots.leftover_steps[slot] = model.contract.horizon - commitment
            slots.commitment_steps[slot] = commitment
            slots.seed[slot] = np.uint64(slot)
        self._ends: queue.SimpleQueue[UnitEnd] = queue.SimpleQueue()
        self._lanes = {
            stage: Lane(stage, model, clock, self._ends.put, workers=plan.workers[stage])
            for stage in plan.stages
        }
        self._issued = 0

    def issue(self, stage: Stage, slot_ids: Slots) -> None:
        """Hand a unit to the lane of a stage; returns at once."""
        self._issued += 1
        requests = tuple(
            Request(
                key=slot,
                robot=0,
                slot=slot,
                arrival_ns=0,
                budget_ns=1,
                reserved_ns=0,
                period_ns=1,
            )
            for slot in slot_ids
        )
        unit = Unit(number=self._issued, stage=stage, requests=requests)
        self._lanes[stage].issue(unit, slot_ids)

    def next_end(self) -> StageEnd:
        """
        Wait for the next unit that ends.

        :raises ModelError: if it has failed
        """
        end = self._ends.get()
        if end.error is not None:
            raise ModelError(f'{end.unit.stage.name} has failed: {end.error}') from end.error
        for refusal in end.refused.values():
            raise ModelError(
                f'{end.unit.stage.name} of {len(end.unit.requests)} requests: {refusal.detail}'
            )
        return StageEnd(
            stage=end.unit.stage,
            slot_ids=tuple(request.slot for request in end.unit.requests),
            started_ns=end.started_ns,
            ended_ns=end.ended_ns,
        )

    def close(self) -> None:
        """End the lanes."""
        for lane in self._lanes.values():
            lane.close()
