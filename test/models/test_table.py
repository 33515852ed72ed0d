# SPDX-License-Identifier: Apache-2.0
"""The model whose stages take the times of a calibration."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predict.devices import sharing_device

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import MonotonicClock, SimulatedClock
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.registry import echo_contract, make_model
from xinfer_ros.models.table import SharedDevice, TableModel
from xinfer_ros.predict.calibration import Calibration, load_calibration, save_calibration

from .filled_slots import empty_slots, write_request

MS = 1_000_000
BATCHES = ((1.0,), (1.0, 1.5), (1.0, 1.25, 1.5))


def _slots() -> SlotArrays:
    slots = empty_slots(echo_contract(), 4)
    for slot in range(4):
        write_request(slots, slot, seed=slot, leftover_steps=5, commitment_steps=slot)
    return slots


def _batch(*slot_ids: int) -> Batch:
    return Batch(slot_ids=slot_ids, state_ids=slot_ids)


class Bench:
    """A table model on a clock that moves when the model waits; waits are kept."""

    def __init__(self, calibration: Calibration, plan: LanePlan | None = None) -> None:
        self.clock, self.slots = SimulatedClock(7 * MS), _slots()
        self.waits: list[int] = []
        self.model = TableModel(echo_contract(), calibration, self.clock, self._wait)
        self.model.bind(self.slots, plan if plan is not None else LanePlan(num_states=4))
        self.model.warm_up()

    def _wait(self, condition: threading.Condition, duration_ns: int) -> None:
        self.waits.append(duration_ns)
        self.clock.advance(duration_ns)

    def took_ms(self, stage: Stage, *slot_ids: int) -> float:
        """Run a unit and return how long it took [ms]."""
        started_ns = self.clock.now_ns()
        assert self.model.run(stage, _batch(*slot_ids)) == {}
        return (self.clock.now_ns() - started_ns) / MS


def test_stages_alone_take_overhead_and_work() -> None:
    bench = Bench(sharing_device())
    assert [bench.took_ms(stage, 0) for stage in Stage] == [2 + 4, 1 + 8, 1 + 12]
    assert bench.waits == [6 * MS, 9 * MS, 13 * MS]


def test_batch_takes_the_work_of_the_calibration() -> None:
    bench = Bench(sharing_device(BATCHES), LanePlan(num_states=4, max_batch=(1, 2, 3)))
    for slot in range(3):
        bench.took_ms(Stage.VIT, slot)
    assert bench.took_ms(Stage.PREFILL, 0, 1) == 1 + 8 * 1.5
    bench.took_ms(Stage.PREFILL, 2)
    assert bench.took_ms(Stage.ACTION, 0, 1, 2) == 1 + 12 * 1.5


def test_units_that_are_larger_than_the_calibration_knows_stop_the_start() -> None:
    with pytest.raises(ConfigError, match='units of PREFILL may have 3 members') as caught:
        Bench(sharing_device(BATCHES), LanePlan(num_states=4, max_batch=(1, 3, 3)))
    assert 'sharing knows the work of 1 to 2' in str(caught.value)


def test_answers_are_those_of_echo() -> None:
    bench, slots = (
        Bench(sharing_device(BATCHES), LanePlan(num_states=4, max_batch=(1, 1, 2))),
        _slots(),
    )
    echo = EchoModel(echo_contract())
    echo.bind(slots, LanePlan(num_states=4))
    for slot in (3, 1):
        for stage in Stage:
            bench.model.run(stage, _batch(slot))
            echo.run(stage, _batch(slot))
    np.testing.assert_array_equal(bench.slots.actions, slots.actions)
    assert slots.actions[3].any()


def test_stage_that_comes_too_early_is_an_error_and_takes_no_time() -> None:
    bench = Bench(sharing_device())
    with pytest.raises(ModelError, match='slot 1: ACTION came where VIT was due'):
        bench.model.run(Stage.ACTION, _batch(1))
    assert bench.waits == []
    assert bench.took_ms(Stage.VIT, 1) == 6


def test_units_of_all_stages_slow_each_other_while_they_run_together() -> None:
    """ViT has begun at 2 ms; from 3 ms on it shares with Prefill: 3 ms of work take 6."""
    device = SharedDevice(sharing_device())
    vit = device.start(Stage.VIT, 1, 0)
    prefill = device.start(Stage.PREFILL, 1, 3 * MS)
    assert device.next_end_ns == 9 * MS
    device.advance(9 * MS - 1)
    assert not device.take_end(vit)
    device.advance(9 * MS)
    assert device.take_end(vit)
    assert not device.take_end(vit)
    # Prefill has done 5 ms at half speed from 4 ms on: 2.5 of 8 ms
    assert device.next_end_ns == 9 * MS + 5_500_000
    device.advance(20 * MS)
    assert device.take_end(prefill)
    assert device.next_end_ns is None


def test_late_look_at_the_clock_changes_no_end() -> None:
    """Units end at their own instants, whenever somebody looks."""
    device = SharedDevice(sharing_device())
    numbers = [device.start(stage, 1, 0) for stage in Stage]
    ends = []
    other = SharedDevice(sharing_device())
    for stage in Stage:
        other.start(stage, 1, 0)
    while other.next_end_ns is not None:
        ends.append(other.next_end_ns)
        other.advance(other.next_end_ns)
    device.advance(ends[1] + 5)
    assert [device.take_end(number) for number in numbers] == [True, True, False]
    assert device.next_end_ns == ends[2]


arrivals = st.lists(
    st.tuples(st.sampled_from(list(Stage)), st.integers(0, 20 * MS)), min_size=1, max_size=12
)


@settings(deadline=None, derandomize=True)
@given(arrivals)
def test_no_unit_is_faster_than_alone_whatever_runs_beside_it(
    units: list[tuple[Stage, int]],
) -> None:
    """Whatever comes when: every unit ends, and none has won time."""
    calibration = sharing_device()
    device, now_ns = SharedDevice(calibration), 0
    started: dict[int, tuple[Stage, int]] = {}
    ended: dict[int, int] = {}

    def run_until(until_ns: int) -> None:
        while device.next_end_ns is not None and device.next_end_ns <= until_ns:
            at_ns = device.next_end_ns
            device.advance(at_ns)
            for number in started.keys() - ended.keys():
                if device.take_end(number):
                    ended[number] = at_ns

    for stage, gap_ns in units:
        now_ns += gap_ns
        run_until(now_ns)
        started[device.start(stage, 1, now_ns)] = stage, now_ns
    run_until(10**12)
    assert ended.keys() == started.keys()
    for number, (stage, start_ns) in started.items():
        alone_ms = calibration.overhead_ms[stage] + calibration.work_ms[stage]
        assert ended[number] - start_ns >= alone_ms * MS - 1000


def test_threads_of_several_lanes_share_the_device_in_real_time() -> None:
    """Every unit ends, and not before its time; how much later is the machine's affair."""
    calibration, clock = sharing_device(), MonotonicClock()
    model = TableModel(echo_contract(), calibration, clock)
    slots = _slots()
    model.bind(slots, LanePlan(num_states=4))
    took_ns: list[int] = []

    def serve(slot: int) -> None:
        for stage in Stage:
            started_ns = clock.now_ns()
            model.run(stage, _batch(slot))
            took_ns.append(clock.now_ns() - started_ns)

    threads = [threading.Thread(target=serve, args=(slot,)) for slot in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(took_ns) == 12
    assert sum(took_ns) >= 4 * 28 * MS
    assert slots.actions.any(axis=(1, 2)).all()


def test_calibrations_are_chosen_by_name_or_file(tmp_path) -> None:
    path = tmp_path / 'mine.json'
    save_calibration(sharing_device(), path)
    for name in ('table', 'table:soft', f'table:{path}'):
        assert make_model(name).contract.name == 'table'
    with pytest.raises(ConfigError, match='no calibration nonsense; shipped: '):
        make_model('table:nonsense')
    with pytest.raises(ConfigError, match='contract of its own'):
        make_model('table:soft', contract=echo_contract())


def test_default_is_the_device_of_the_paper() -> None:
    model = make_model('table')
    slots, paper = _slots(), load_calibration('paper')
    model.bind(slots, LanePlan(num_states=4))
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    model.run(Stage.VIT, _batch(0))
    alone_ms = paper.overhead_ms[Stage.VIT] + paper.work_ms[Stage.VIT]
    assert clock.now_ns() - started_ns >= alone_ms * MS
