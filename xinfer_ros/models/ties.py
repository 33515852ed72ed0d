# SPDX-License-Identifier: Apache-2.0
"""From requests in slots to what ties their new chunks to the leftovers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.guidance import prefix_weights
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.models.adapter import frozen_steps
from xinfer_ros.models.processor import Processor
from xinfer_ros.models.rtc import RtcMode, RtcOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class TieArrays:
    """
    The ties of a batch in plain arrays; a request without any has zeros.

    :param previous: ``(B, H, action_width)`` float32 leftovers in model space, padded with zeros
    :param weights: ``(B, H)`` float32 guidance weights in [0, 1]
    :param frozen: ``(B, H)`` bool, rows that are clamped to ``previous``
    """

    previous: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    frozen: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """
    How the requests of one model are tied to their leftovers.

    :param processor: takes leftovers into model space
    :param options: with a mode; without one, guided
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of a row in model space
    :param max_commitment_steps: what a larger commitment is lowered to [steps]
    """

    processor: Processor
    options: RtcOptions
    horizon: int
    action_width: int
    max_commitment_steps: int

    def arrays(self, slots: SlotArrays, slot_ids: Sequence[int]) -> TieArrays:
        """
        Return the ties of some requests, each with its own commitment, weights and leftover.

        A request without a leftover or a commitment is not tied.
        """
        count = len(slot_ids)
        ties = TieArrays(
            previous=np.zeros((count, self.horizon, self.action_width), np.float32),
            weights=np.zeros((count, self.horizon), np.float32),
            frozen=np.zeros((count, self.horizon), np.bool_),
        )
        if self.options.mode is RtcMode.NONE:
            return ties
        for row, slot in enumerate(slot_ids):
            commitment = frozen_steps(slots, slot, self.max_commitment_steps)
            if commitment > 0:
                self._tie(ties, row, slots, slot, commitment)
        return ties

    def _tie(
        self, ties: TieArrays, row: int, slots: SlotArrays, slot: int, commitment: int
    ) -> None:
        leftover = self.processor.leftover(slots, slot)
        ties.previous[row, :, : leftover.shape[-1]] = leftover
        if self.options.mode is RtcMode.HARD_PREFIX:
            ties.frozen[row, :commitment] = True
            return
        end = min(int(slots.leftover_steps[slot]), self.horizon)
        ties.weights[row] = prefix_weights(self.horizon, commitment, end, self.options.schedule)
