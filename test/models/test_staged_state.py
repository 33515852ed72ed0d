# SPDX-License-Identifier: Apache-2.0
"""SmolVLA and Wall-OSS over slots, with tiny random weights."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pytest

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Reason
from xinfer_ros.models.aloha import aloha_statistics
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.random_families import make_random_family, random_family_names
from xinfer_ros.models.staged_state import StagedStateVla

from .filled_slots import empty_slots, write_instruction, write_request

_SLOTS = 4
Actions = npt.NDArray[np.float32]


@pytest.fixture(scope='module', params=['tiny_smolvla', 'tiny_wall'])
def model(request: pytest.FixtureRequest) -> StagedStateVla:
    """Return one model of each family; every test binds it to slots of its own."""
    return make_random_family(request.param, ModelOptions(device='cpu'))


@pytest.fixture
def slots(model: StagedStateVla) -> SlotArrays:
    """Return bound slots; odd ones have a leftover and a commitment."""
    slots = empty_slots(model.contract, _SLOTS)
    for slot in range(_SLOTS):
        tied = slot % 2 == 1
        write_request(
            slots,
            slot,
            seed=slot,
            statistics=aloha_statistics(),
            leftover_steps=9 if tied else 0,
            commitment_steps=2 + slot if tied else 0,
        )
        write_instruction(slots, slot, f'stack {slot}' + ' now' * slot)
    model.bind(slots, LanePlan(num_states=_SLOTS, max_batch=(_SLOTS,) * 3))
    return slots


def _answers(model: StagedStateVla, slots: SlotArrays, ids: Sequence[int]) -> Actions:
    batch = Batch(slot_ids=tuple(ids), state_ids=tuple(ids))
    for stage in Stage:
        assert model.run(stage, batch) == {}
    return slots.actions[list(ids)].copy()


def test_answers_are_inside_the_joint_limits(model: StagedStateVla, slots: SlotArrays) -> None:
    actions = _answers(model, slots, range(_SLOTS))
    assert np.isfinite(actions).all()
    limits = aloha_statistics()
    assert (actions >= limits.q01 - 1e-6).all()
    assert (actions <= limits.q99 + 1e-6).all()


def test_request_in_a_batch_is_answered_as_alone(model: StagedStateVla, slots: SlotArrays) -> None:
    together = _answers(model, slots, range(_SLOTS))
    for slot in range(_SLOTS):
        np.testing.assert_allclose(_answers(model, slots, [slot])[0], together[slot], atol=1e-4)


@pytest.mark.parametrize('what', ['state', 'instruction', 'seed', 'picture'])
def test_answer_depends_on_every_input(
    model: StagedStateVla, slots: SlotArrays, what: str
) -> None:
    before = _answers(model, slots, [0])
    if what == 'state':
        slots.state[0] += 0.3
    elif what == 'instruction':
        write_instruction(slots, 0, 'open a door')
    elif what == 'seed':
        slots.seed[0] += 1
    else:
        slots.images[2][0] = 255 - slots.images[2][0]
    assert np.abs(_answers(model, slots, [0]) - before).max() > 1e-5


def test_missing_camera_is_not_looked_at(model: StagedStateVla, slots: SlotArrays) -> None:
    seen = _answers(model, slots, [0])
    slots.camera_present[0, 0] = False
    before = _answers(model, slots, [0])
    assert np.abs(before - seen).max() > 1e-5
    slots.images[0][0] = 255 - slots.images[0][0]
    np.testing.assert_array_equal(_answers(model, slots, [0]), before)


def test_committed_rows_are_the_leftover_and_the_next_row_is_near(
    model: StagedStateVla, slots: SlotArrays
) -> None:
    tied = _answers(model, slots, [1])[0]
    np.testing.assert_array_equal(tied[:3], slots.leftover[1, :3])
    slots.commitment_steps[1] = 0
    free = _answers(model, slots, [1])[0]
    span = aloha_statistics().q99 - aloha_statistics().q01
    distance = [np.abs((rows[3] - slots.leftover[1, 3]) / span).mean() for rows in (tied, free)]
    assert distance[0] < 0.5 * distance[1]


def test_refused_member_changes_no_other(model: StagedStateVla, slots: SlotArrays) -> None:
    alone = _answers(model, slots, [2])[0]
    slots.instruction[0, :2], slots.instruction_bytes[0] = (0xFF, 0xFE), 2
    batch = Batch(slot_ids=(0, 2), state_ids=(0, 2))
    assert model.run(Stage.VIT, batch) == {}
    refused = model.run(Stage.PREFILL, batch)
    assert {slot: refusal.reason for slot, refusal in refused.items()} == {
        0: Reason.REJECTED_INSTRUCTION
    }
    model.run(Stage.ACTION, Batch(slot_ids=(2,), state_ids=(2,)))
    np.testing.assert_allclose(slots.actions[2], alone, atol=1e-4)


def test_longest_instruction_of_the_contract_fits(
    model: StagedStateVla, slots: SlotArrays
) -> None:
    write_instruction(slots, 0, 'x' * model.contract.max_instruction_bytes)
    assert np.isfinite(_answers(model, slots, [0])).all()


def test_states_need_not_be_the_slots(model: StagedStateVla, slots: SlotArrays) -> None:
    expected = _answers(model, slots, [0, 1])
    batch = Batch(slot_ids=(0, 1), state_ids=(3, 2))
    for stage in Stage:
        model.run(stage, batch)
    np.testing.assert_array_equal(slots.actions[[0, 1]], expected)


def test_warm_up_leaves_the_slot_as_it_was(model: StagedStateVla, slots: SlotArrays) -> None:
    names = [field.name for field in fields(slots) if field.name != 'images']
    before = [getattr(slots, name).copy() for name in names]
    model.warm_up()
    for name, array in zip(names, before, strict=True):
        np.testing.assert_array_equal(getattr(slots, name), array)


def test_running_before_bind_is_an_error() -> None:
    fresh = make_random_family('tiny_smolvla', ModelOptions(device='cpu'))
    with pytest.raises(ModelError, match='call bind'):
        fresh.run(Stage.VIT, Batch(slot_ids=(0,), state_ids=(0,)))
    with pytest.raises(ModelError, match='call bind'):
        fresh.warm_up()


def test_slots_of_another_contract_are_refused(model: StagedStateVla) -> None:
    shorter = replace(model.contract, horizon=8)
    with pytest.raises(ConfigError, match=r'slots hold actions of shape \(8, 14\)'):
        model.bind(empty_slots(shorter, 1), LanePlan(num_states=1))


def test_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    slots = None
    found = []
    for seed in (0, 0, 1):
        made = make_random_family('tiny_smolvla', ModelOptions(seed=seed, device='cpu'))
        slots = slots if slots is not None else empty_slots(made.contract, 1)
        write_request(slots, 0, seed=5, statistics=aloha_statistics())
        made.bind(slots, LanePlan(num_states=1))
        found.append(_answers(made, slots, [0]))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[2] - found[0]).max() > 1e-4


def test_names_say_what_is_tiny_and_what_has_published_sizes() -> None:
    assert all(name.startswith(('tiny_', 'random_')) for name in random_family_names())
