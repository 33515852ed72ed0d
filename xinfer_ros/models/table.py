# SPDX-License-Identifier: Apache-2.0
"""A model whose stages take the times of a calibration, interference included."""

import threading
from collections.abc import Callable

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import Clock, MonotonicClock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import Refusals
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice
from xinfer_ros.predict.matching import serving_calibration

MS = 1_000_000
INSTRUCTION_BYTES = 400
Wait = Callable[[threading.Condition, int], None]


def wait_on(condition: threading.Condition, duration_ns: int) -> None:
    """Wait for a condition that is held, at most for a time [ns]."""
    condition.wait(duration_ns / 1e9)


class SharedDevice:
    """
    The units of all stages on one device; each ends when the table says so.

    A unit that comes slows those that run, one that ends lets them go faster. No thread and no
    clock: time is an argument. Not thread-safe.

    :param calibration: stage times, work of batches and rates
    """

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration
        self._device = SimulatedDevice(calibration.rates)
        self._ended: set[int] = set()
        self._started = 0

    @property
    def next_end_ns(self) -> int | None:
        """Return when the next unit ends if no other starts, None if none runs."""
        return self._device.next_end_ns

    def start(self, stage: Stage, count: int, now_ns: int) -> int:
        """
        Start a unit.

        :param count: its members
        :returns: its number
        """
        self.advance(now_ns)
        calibration = self._calibration
        self._started += 1
        unit = Executing(
            number=self._started,
            stage=stage,
            begin_ns=now_ns + round(calibration.overhead_ms[stage] * MS),
            left_ms=calibration.work_ms[stage] * calibration.batch_work[stage][count - 1],
        )
        self._device.start(now_ns, [unit])
        return self._started

    def advance(self, now_ns: int) -> None:
        """Let every unit end whose time has come, in order and at its own instant."""
        while (end_ns := self._device.next_end_ns) is not None and end_ns <= now_ns:
            self._ended.add(self._device.end_next())

    def take_end(self, number: int) -> bool:
        """Return whether a unit has ended; True once."""
        if number not in self._ended:
            return False
        self._ended.remove(number)
        return True


class TableModel:
    """
    A staged model that answers as ``echo`` does, in the time that a calibration gives it.

    For tests and for planning: an engine serves robots on a device that is not at hand. Units of
    all stages share the device, so they slow each other as the rate table says.

    :param contract: any contract
    :param calibration: of the device that is stood in for
    :param clock: the steady clock
    :param wait: lets time pass; with a simulated clock it must move it
    """

    def __init__(
        self,
        contract: ModelContract,
        calibration: Calibration,
        clock: Clock,
        wait: Wait = wait_on,
    ) -> None:
        self.contract = contract
        self._calibration, self._clock, self._wait = calibration, clock, wait
        self._echo = EchoModel(contract)
        self._device = SharedDevice(calibration)
        self._changed = threading.Condition()

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """
        Take the slots.

        :raises ConfigError: if a unit may be larger than the calibration knows
        """
        for stage, most in zip(Stage, plan.max_batch, strict=True):
            known = len(self._calibration.batch_work[stage])
            if most > known:
                raise ConfigError(
                    f'units of {stage.name} may have {most} members, calibration '
                    f'{self._calibration.name} knows the work of 1 to {known}'
                )
        self._echo.bind(slots, plan)

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """
        Run one stage of some requests; returns when the table says that it is done.

        :raises ModelError: if the model is not bound or the stage before has not run
        """
        refused = self._echo.run(stage, batch)
        with self._changed:
            number = self._device.start(stage, len(batch.slot_ids), self._clock.now_ns())
            self._changed.notify_all()  # the others end later now
            while not self._device.take_end(number):
                end_ns = self._device.next_end_ns
                now_ns = self._clock.now_ns()
                if end_ns is not None and end_ns > now_ns:
                    self._wait(self._changed, end_ns - now_ns)
                self._device.advance(self._clock.now_ns())
        return refused

    def warm_up(self) -> None:
        """Do nothing: the first run is as fast as any."""


def make_table_model(name: str) -> TableModel:
    """
    Return a table model on the steady clock, for the robot of the shipped episodes.

    :param name: ``table``, or ``table:`` and a shipped calibration or a .json file
    :raises ConfigError: if there is no such calibration, or it is not good
    """
    calibration = serving_calibration('', name)
    contract = aloha_contract('table', INSTRUCTION_BYTES)
    return TableModel(contract, calibration, MonotonicClock())
