# SPDX-License-Identifier: Apache-2.0
"""A model that takes the same time for every request: what is left is the server's own cost."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.adapter import Refusals, frozen_steps
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.predict.matching import FIXED, fixed_time_ms

INSTRUCTION_BYTES = 400
ROW_INCREMENT = 1e-3


class FixedModel:
    """
    A model of one stage, Action, that takes a fixed time and computes nothing.

    Row ``i``, joint ``j`` is ``state[j] + 1e-3 i``, so that an answer shows whose it is. Rows
    below the commitment repeat the leftover. A batch takes as long as one request; the calibration
    that goes with it knows no batches, and one unit at a time.

    :param contract: any contract with the stage Action
    :param model_ms: how long a unit takes, 0 for none at all [ms]
    :param sleep: lets the time pass, given in s
    """

    def __init__(
        self,
        contract: ModelContract,
        model_ms: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.contract = contract
        self._seconds, self._sleep = model_ms / 1e3, sleep
        rows = np.arange(contract.horizon, dtype=np.float32)
        self._ramp = np.float32(ROW_INCREMENT) * rows[:, None]
        self._slots: SlotArrays | None = None

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Take the slots."""
        self._slots = slots

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """
        Run one stage of some requests; none is ever refused.

        :raises ModelError: if the model is not bound
        """
        slots = self._slots
        if slots is None:
            raise ModelError('the fixed model has no slots; call bind() first')
        if self._seconds > 0.0:
            self._sleep(self._seconds)
        most = self.contract.max_commitment_steps
        for slot in batch.slot_ids:
            actions = slots.actions[slot]
            np.add(slots.state[slot], self._ramp, out=actions)
            frozen = frozen_steps(slots, slot, most)
            actions[:frozen] = slots.leftover[slot, :frozen]
        return {}

    def warm_up(self) -> None:
        """Do nothing: the first run is as fast as any."""


def make_fixed_model(name: str) -> FixedModel:
    """
    Return a fixed model for the robot of the shipped episodes.

    :param name: ``fixed:`` and the time that it takes [ms]
    :raises ConfigError: if that is no time
    """
    contract = aloha_contract(FIXED, INSTRUCTION_BYTES)
    return FixedModel(replace(contract, stages=(Stage.ACTION,)), fixed_time_ms(name))
