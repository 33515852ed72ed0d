# SPDX-License-Identifier: Apache-2.0
"""A model without a network: its answer shows which inputs reached it."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.adapter import Refusals, frozen_steps

ROW_INCREMENT = 1e-3


class EchoModel:
    """
    A staged model that answers with its inputs.

    Row ``i``, joint ``j`` is ``state[j] + 1e-3 i``. The last joint is instead the mean of all
    pixels of camera 0 over 255 (0 where the robot lacks it), if the contract has a camera. Rows
    below the commitment repeat the leftover. Stages out of order are an error, so that a mistake
    of an engine shows.

    :param contract: any contract
    :param stage_seconds: how long each stage takes whatever its batch [s]; stages left out take no
        time
    :param sleep: lets the time pass; needed for ``stage_seconds``
    :raises ValueError: if only one of ``stage_seconds`` and ``sleep`` is given
    """

    def __init__(
        self,
        contract: ModelContract,
        *,
        stage_seconds: Mapping[Stage, float] | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        if (stage_seconds is None) != (sleep is None):
            raise ValueError('stage_seconds and sleep must be given together')
        self.contract = contract
        self._stage_seconds = dict(stage_seconds or {})
        self._sleep = sleep
        self._slots: SlotArrays | None = None
        self._next_stage: list[Stage | None] = []
        self._brightness: npt.NDArray[np.float32] = np.zeros(0, np.float32)
        self._state: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Take the slots and allocate the state of each between its stages."""
        self._slots = slots
        self._next_stage = [None] * slots.num_slots
        self._brightness = np.zeros(slots.num_slots, np.float32)
        self._state = np.zeros((slots.num_slots, self.contract.action_dim), np.float32)

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """
        Run one stage of some requests; none is ever refused.

        :raises ModelError: if the model is not bound or the stage before has not run
        """
        if self._slots is None:
            raise ModelError('the echo model has no slots; call bind() first')
        for slot in batch.slot_ids:
            expected = self._next_stage[slot]
            if stage is not Stage.VIT and stage is not expected:
                name = 'VIT' if expected is None else expected.name
                raise ModelError(f'slot {slot}: {stage.name} came where {name} was due')
        seconds = self._stage_seconds.get(stage, 0.0)
        if self._sleep is not None and seconds > 0.0:
            self._sleep(seconds)
        for slot in batch.slot_ids:
            self._run_one(stage, slot, self._slots)
            self._next_stage[slot] = stage.following
        return {}

    def warm_up(self) -> None:
        """Do nothing: the first run is as fast as any."""

    def _run_one(self, stage: Stage, slot: int, slots: SlotArrays) -> None:
        if stage is Stage.VIT:
            seen = bool(slots.images) and bool(slots.camera_present[slot, 0])
            self._brightness[slot] = slots.images[0][slot].mean() / 255.0 if seen else 0.0
        elif stage is Stage.PREFILL:
            self._state[slot] = slots.state[slot]
        else:
            self._answer(slot, slots)

    def _answer(self, slot: int, slots: SlotArrays) -> None:
        rows = np.arange(self.contract.horizon, dtype=np.float32)
        actions = slots.actions[slot]
        actions[:] = self._state[slot] + np.float32(ROW_INCREMENT) * rows[:, None]
        if slots.images:
            actions[:, -1] = self._brightness[slot]
        frozen = frozen_steps(slots, slot, self.contract.max_commitment_steps)
        actions[:frozen] = slots.leftover[slot, :frozen]
