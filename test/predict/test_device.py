# SPDX-License-Identifier: Apache-2.0
"""Units on the simulated device."""

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.device import Executing, SimulatedDevice

MS = 1_000_000


def _halving() -> SimulatedDevice:
    """Return a device on which two units of any stage go at half speed each."""
    rates = np.ones((3, 2, 2, 2)) / (1.0 + np.indices((2, 2, 2)).sum(axis=0))
    return SimulatedDevice(rates)


def _unit(number: int, stage: Stage, begin_ms: int, left_ms: float) -> Executing:
    return Executing(number=number, stage=stage, begin_ns=begin_ms * MS, left_ms=left_ms)


def test_idle_device_has_no_next_end() -> None:
    assert _halving().next_end_ns is None


def test_unit_alone_ends_after_its_overhead_and_work() -> None:
    device = _halving()
    device.start(5 * MS, [_unit(1, Stage.VIT, 7, 10.0)])
    assert device.next_end_ns == 17 * MS
    assert device.end_next() == 1
    assert device.next_end_ns is None


def test_units_slow_each_other_while_both_run() -> None:
    """8 ms alone, then halved: 2 + 8 / 0.5 = 18 ms; the other has 4 ms of its 12 left then."""
    device = _halving()
    device.start(0, [_unit(1, Stage.VIT, 0, 10.0)])
    device.start(2 * MS, [_unit(2, Stage.ACTION, 2, 12.0)])
    assert device.next_end_ns == 18 * MS
    assert device.end_next() == 1
    assert device.next_end_ns == 22 * MS


def test_overhead_does_no_work_but_counts_as_load() -> None:
    device = _halving()
    device.start(0, [_unit(1, Stage.VIT, 0, 10.0), _unit(2, Stage.PREFILL, 100, 1.0)])
    assert device.next_end_ns == 20 * MS


def test_of_units_that_end_together_the_first_started_ends_first() -> None:
    device = _halving()
    device.start(0, [_unit(1, Stage.VIT, 0, 3.0), _unit(2, Stage.PREFILL, 0, 3.0)])
    assert [device.end_next(), device.end_next()] == [1, 2]
