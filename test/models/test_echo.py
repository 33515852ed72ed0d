# SPDX-License-Identifier: Apache-2.0
"""The model that answers with its inputs."""

import numpy as np
import pytest

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.registry import echo_contract

from .filled_slots import empty_slots, write_request


@pytest.fixture
def slots() -> SlotArrays:
    """Return four slots, each with a request of its own."""
    slots = empty_slots(echo_contract(), 4)
    for slot in range(4):
        write_request(slots, slot, seed=slot, leftover_steps=5, commitment_steps=slot)
    return slots


def _bound(slots: SlotArrays) -> EchoModel:
    model = EchoModel(echo_contract())
    model.bind(slots, LanePlan(num_states=4))
    return model


def _batch(*slot_ids: int) -> Batch:
    return Batch(slot_ids=slot_ids, state_ids=slot_ids)


def test_answer_shows_state_row_picture_and_leftover(slots: SlotArrays) -> None:
    model = _bound(slots)
    for stage in Stage:
        model.run(stage, _batch(0, 2))
    for slot in (0, 2):
        expected = slots.state[slot] + 1e-3 * np.arange(16, dtype=np.float32)[:, None]
        expected[:, -1] = slots.images[0][slot].mean() / 255
        expected[:slot] = slots.leftover[slot, :slot]
        np.testing.assert_allclose(slots.actions[slot], expected, atol=1e-6)
    assert not slots.actions[[1, 3]].any()


def test_frozen_rows_end_with_the_leftover_and_with_the_contract(slots: SlotArrays) -> None:
    model = _bound(slots)
    slots.commitment_steps[:] = 16
    slots.leftover_steps[1] = 14
    for stage in Stage:
        model.run(stage, _batch(0, 1))
    np.testing.assert_array_equal(slots.actions[0, :5], slots.leftover[0, :5])
    assert (slots.actions[0, 5] != slots.leftover[0, 5]).any()
    np.testing.assert_array_equal(slots.actions[1, :8], slots.leftover[1, :8])
    assert (slots.actions[1, 8] != slots.leftover[1, 8]).any()


def test_missing_camera_is_dark(slots: SlotArrays) -> None:
    model = _bound(slots)
    slots.camera_present[0, 0] = False
    for stage in Stage:
        model.run(stage, _batch(0))
    assert not slots.actions[0, :, -1].any()


def test_stage_that_comes_too_early_is_an_error(slots: SlotArrays) -> None:
    model = _bound(slots)
    model.run(Stage.VIT, _batch(1))
    with pytest.raises(ModelError, match='slot 1: ACTION came where PREFILL was due'):
        model.run(Stage.ACTION, _batch(1))


def test_second_answer_needs_new_pictures(slots: SlotArrays) -> None:
    model = _bound(slots)
    for stage in Stage:
        model.run(stage, _batch(1))
    with pytest.raises(ModelError, match='PREFILL came where VIT was due'):
        model.run(Stage.PREFILL, _batch(1))


def test_unbound_model_says_so() -> None:
    with pytest.raises(ModelError, match='bind'):
        EchoModel(echo_contract()).run(Stage.VIT, _batch(0))


def test_stages_take_the_time_they_are_given(slots: SlotArrays) -> None:
    slept: list[float] = []
    times = {Stage.VIT: 0.25, Stage.ACTION: 0.5}
    model = EchoModel(echo_contract(), stage_seconds=times, sleep=slept.append)
    model.bind(slots, LanePlan(num_states=4))
    model.warm_up()
    for stage in Stage:
        model.run(stage, _batch(0, 1))
    assert slept == [0.25, 0.5]


def test_times_without_a_sleep_are_refused() -> None:
    with pytest.raises(ValueError, match='together'):
        EchoModel(echo_contract(), stage_seconds={Stage.VIT: 0.1})
