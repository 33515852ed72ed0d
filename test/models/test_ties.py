# SPDX-License-Identifier: Apache-2.0
"""From leftovers in slots to what ties new chunks to them."""

import numpy as np
import pytest

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.models.aloha import aloha_statistics
from xinfer_ros.models.rtc import RtcMode, RtcOptions
from xinfer_ros.models.ties import Ties
from xinfer_ros.models.tiny import tiny_contract, tiny_processor

from .filled_slots import empty_slots, write_request

_WIDTH, _MAX = 20, 6


def _ties(mode: RtcMode | None, schedule: Schedule = Schedule.LINEAR) -> Ties:
    return Ties(
        processor=tiny_processor(),
        options=RtcOptions(mode=mode, schedule=schedule),
        horizon=16,
        action_width=_WIDTH,
        max_commitment_steps=_MAX,
    )


@pytest.fixture
def slots() -> SlotArrays:
    """Return slots without a leftover, with one, with a too long commitment, and with none."""
    slots = empty_slots(tiny_contract(), 4)
    for slot, (leftover, commitment) in enumerate(((0, 0), (11, 3), (13, 16), (9, 0))):
        write_request(
            slots,
            slot,
            seed=slot,
            statistics=aloha_statistics(),
            leftover_steps=leftover,
            commitment_steps=commitment,
        )
    return slots


@pytest.mark.parametrize('mode', [None, RtcMode.GUIDED])
def test_each_request_is_guided_by_its_own_leftover(slots: SlotArrays, mode: RtcMode) -> None:
    ties = _ties(mode, Schedule.EXP).arrays(slots, [1, 0, 2])
    np.testing.assert_array_equal(ties.weights[0], prefix_weights(16, 3, 11, Schedule.EXP))
    assert not ties.weights[1].any()
    seen = aloha_statistics().normalise(slots.leftover[1])
    np.testing.assert_array_equal(ties.previous[0, :, :14], seen)
    assert not ties.frozen.any()


def test_commitment_beyond_the_maximum_is_clamped(slots: SlotArrays) -> None:
    """RT-02: d at its maximum, or above, is served with the maximum, never an exception."""
    guided = _ties(RtcMode.GUIDED).arrays(slots, [2])
    np.testing.assert_array_equal(guided.weights[0], prefix_weights(16, _MAX, 13, Schedule.LINEAR))
    hard = _ties(RtcMode.HARD_PREFIX).arrays(slots, [2])
    assert hard.frozen[0].tolist() == [True] * _MAX + [False] * 10


def test_commitment_is_never_longer_than_the_leftover(slots: SlotArrays) -> None:
    slots.leftover_steps[2] = 2
    ties = _ties(RtcMode.HARD_PREFIX).arrays(slots, [2])
    assert ties.frozen[0].sum() == 2


def test_hard_prefix_freezes_rows_and_guides_none(slots: SlotArrays) -> None:
    ties = _ties(RtcMode.HARD_PREFIX).arrays(slots, [0, 1])
    assert ties.frozen.sum(axis=1).tolist() == [0, 3]
    assert not ties.weights.any()


def test_leftover_is_padded_by_its_last_row_and_columns_by_zero(slots: SlotArrays) -> None:
    ties = _ties(RtcMode.GUIDED).arrays(slots, [1])
    np.testing.assert_array_equal(ties.previous[0, 11:], ties.previous[0, [11] * 5])
    assert np.abs(ties.previous[0, 11, :14]).min() > 0.0
    assert not ties.previous[0, :, 14:].any()


def test_nothing_is_tied_without_chunking_or_commitment(slots: SlotArrays) -> None:
    none = _ties(RtcMode.NONE).arrays(slots, [0, 1, 2, 3])
    assert not none.weights.any()
    assert not none.frozen.any()
    free = _ties(RtcMode.GUIDED).arrays(slots, [3])
    assert not free.weights.any()
