# SPDX-License-Identifier: Apache-2.0
"""Lanes: workers, refusals, and what happens when the memory of the device is full."""

import queue
import threading

import pytest

from xinfer_ros.core.batch import Batch
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.health import Fault
from xinfer_ros.engine.lane import Lane, UnitEnd
from xinfer_ros.errors import Reason, Rejected

TIMEOUT_S = 30.0


def unit(number: int, *slots: int) -> Unit:
    """Return a unit of requests in these slots."""
    requests = tuple(
        Request(
            key=slot, robot=slot, slot=slot, arrival_ns=0, budget_ns=1, reserved_ns=0, period_ns=1
        )
        for slot in slots
    )
    return Unit(number=number, stage=Stage.ACTION, requests=requests)


class SmallDevice:
    """
    A model that has no memory for more than a few members at once.

    :param room: members
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self.ran: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        if len(batch.slot_ids) > self._room:
            raise MemoryError('no room')
        self.ran.append((batch.slot_ids, batch.state_ids))
        return {slot: Rejected(Reason.REJECTED_INSTRUCTION, 'odd') for slot in batch.slot_ids
                if slot == 13}  # fmt: skip


def _end(model: SmallDevice, *slots: int) -> UnitEnd:
    ends: queue.SimpleQueue[UnitEnd] = queue.SimpleQueue()

    def classify(error: Exception) -> Fault:
        return Fault.OUT_OF_MEMORY if isinstance(error, MemoryError) else Fault.MODEL

    lane = Lane(Stage.ACTION, model, MonotonicClock(), ends.put, classify=classify)
    lane.issue(unit(1, *slots), tuple(slot + 100 for slot in slots))
    end = ends.get(timeout=TIMEOUT_S)
    lane.close()
    return end


@pytest.mark.parametrize(
    ('room', 'parts'), [(5, [5]), (4, [2, 3]), (2, [2, 1, 2]), (1, [1, 1, 1, 1, 1])]
)
def test_batch_without_memory_is_run_in_halves_and_nobody_is_lost(
    room: int, parts: list[int]
) -> None:
    model = SmallDevice(room)
    end = _end(model, 1, 2, 3, 4, 5)
    assert (end.error, end.refused) == (None, {})
    assert [len(slots) for slots, _ in model.ran] == parts
    assert [slot for slots, _ in model.ran for slot in slots] == [1, 2, 3, 4, 5]
    assert [state for _, states in model.ran for state in states] == [101, 102, 103, 104, 105]


def test_halves_stay_with_the_worker_whose_memory_they_use() -> None:
    ran: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    met = threading.Barrier(2, timeout=TIMEOUT_S)

    class Small:
        def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
            if len(batch.slot_ids) > 1:
                met.wait()  # both workers have a batch
                raise MemoryError('no room')
            ran.put((batch.slot_ids[0], batch.worker))
            return {}

    ends: queue.SimpleQueue[UnitEnd] = queue.SimpleQueue()
    lane = Lane(
        Stage.ACTION, Small(), MonotonicClock(), ends.put, workers=2,
        classify=lambda error: Fault.OUT_OF_MEMORY,
    )  # fmt: skip
    lane.issue(unit(1, 1, 2), (1, 2))
    lane.issue(unit(2, 3, 4), (3, 4))
    assert all(ends.get(timeout=TIMEOUT_S).error is None for _ in range(2))
    lane.close()
    worker = dict(ran.get_nowait() for _ in range(4))
    assert worker[1] == worker[2]
    assert worker[3] == worker[4]
    assert {worker[1], worker[3]} == {0, 1}


def test_member_that_does_not_fit_even_alone_is_refused() -> None:
    end = _end(SmallDevice(0), 1, 2)
    assert {slot: why.reason for slot, why in end.refused.items()} == {
        1: Reason.OUT_OF_MEMORY,
        2: Reason.OUT_OF_MEMORY,
    }


def test_members_refused_in_each_half_are_all_told() -> None:
    end = _end(SmallDevice(1), 13, 2)
    assert {slot: why.reason for slot, why in end.refused.items()} == {
        13: Reason.REJECTED_INSTRUCTION
    }


def test_other_errors_are_the_units_own() -> None:
    class Broken(SmallDevice):
        def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
            raise RuntimeError('broken')

    end = _end(Broken(1), 1, 2)
    assert isinstance(end.error, RuntimeError)
    assert end.fault is Fault.MODEL


def test_workers_of_a_lane_run_units_at_once_and_each_has_its_number() -> None:
    met = threading.Barrier(3, timeout=TIMEOUT_S)
    workers: queue.SimpleQueue[int] = queue.SimpleQueue()

    class Meeting:
        def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
            met.wait()  # passes only if three units run at once
            workers.put(batch.worker)
            return {}

    ends: queue.SimpleQueue[UnitEnd] = queue.SimpleQueue()
    lane = Lane(Stage.VIT, Meeting(), MonotonicClock(), ends.put, workers=3)
    for number in range(3):
        lane.issue(unit(number, number), (number,))
    assert all(ends.get(timeout=TIMEOUT_S).error is None for _ in range(3))
    assert {workers.get_nowait() for _ in range(3)} == {0, 1, 2}
    lane.close()
