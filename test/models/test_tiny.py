# SPDX-License-Identifier: Apache-2.0
"""The tiny models of all families over slots, as robots see them."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.adapter import Refusals, StagedModel
from xinfer_ros.models.aloha import aloha_statistics
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.registry import echo_contract, make_model
from xinfer_ros.models.tiny import seeded_pi05, tiny_config

from .filled_slots import empty_slots, write_instruction, write_request
from .staged_models import TINY

_SLOTS = 6
_PLAN = LanePlan(num_states=_SLOTS, max_batch=(_SLOTS, _SLOTS, _SLOTS))
_SMALL_PLAN = LanePlan(num_states=_SLOTS)
Actions = npt.NDArray[np.float32]


@pytest.fixture(scope='module', params=TINY)
def model(request: pytest.FixtureRequest) -> StagedModel:
    """Return one tiny model of each family; every test binds it to slots of its own."""
    return make_model(request.param, ModelOptions(device='cpu'))


@pytest.fixture
def slots(model: StagedModel) -> SlotArrays:
    """Return bound slots; odd ones have a leftover and commitments of 3 and more."""
    slots = empty_slots(model.contract, _SLOTS)
    for slot in range(_SLOTS):
        tied = slot % 2 == 1
        write_request(
            slots,
            slot,
            seed=slot,
            statistics=aloha_statistics(),
            leftover_steps=9 + slot if tied else 0,
            commitment_steps=2 + slot if tied else 0,
        )
    model.bind(slots, _PLAN)
    return slots


def _run(model: StagedModel, stage: Stage, slot_ids: Sequence[int]) -> Refusals:
    """Run a stage; every slot has the state of its number."""
    return model.run(stage, Batch(slot_ids=tuple(slot_ids), state_ids=tuple(slot_ids)))


def _answer(model: StagedModel, slots: SlotArrays, slot_ids: Sequence[int]) -> Actions:
    for stage in Stage:
        assert not _run(model, stage, slot_ids)
    return slots.actions[list(slot_ids)].copy()


def test_answers_are_finite_and_inside_the_joint_limits(
    model: StagedModel, slots: SlotArrays
) -> None:
    actions = _answer(model, slots, range(_SLOTS))
    assert np.isfinite(actions).all()
    assert (actions >= aloha_statistics().q01).all()
    assert (actions <= aloha_statistics().q99).all()


def test_same_request_gets_the_same_answer_whatever_the_global_seed(
    model: StagedModel, slots: SlotArrays
) -> None:
    first = _answer(model, slots, [0])
    torch.manual_seed(1)
    other = make_model(model.contract.name, ModelOptions(device='cpu'))
    other.bind(slots, _SMALL_PLAN)
    np.testing.assert_array_equal(_answer(other, slots, [0]), first)


def test_making_a_model_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    seeded_pi05(tiny_config(), seed=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_another_seed_is_another_model(model: StagedModel, slots: SlotArrays) -> None:
    first = _answer(model, slots, [0])
    other = make_model(model.contract.name, ModelOptions(device='cpu', seed=1))
    other.bind(slots, _SMALL_PLAN)
    assert np.abs(_answer(other, slots, [0]) - first).max() > 1e-2


def test_batch_gives_what_its_requests_get_alone(model: StagedModel, slots: SlotArrays) -> None:
    alone = np.concatenate([_answer(model, slots, [slot]) for slot in range(_SLOTS)])
    slots.actions[:] = 0
    np.testing.assert_allclose(_answer(model, slots, range(_SLOTS)), alone, atol=1e-5)
    slots.actions[:] = 0
    np.testing.assert_allclose(_answer(model, slots, [4, 1]), alone[[4, 1]], atol=1e-5)


def test_committed_rows_are_those_of_the_leftover(model: StagedModel, slots: SlotArrays) -> None:
    actions = _answer(model, slots, range(_SLOTS))
    for slot in (1, 3, 5):
        steps = 2 + slot
        np.testing.assert_array_equal(actions[slot, :steps], slots.leftover[slot, :steps])
        assert (actions[slot, steps] != slots.leftover[slot, steps]).any()


def test_commitment_is_clamped_to_leftover_and_contract(
    model: StagedModel, slots: SlotArrays
) -> None:
    slots.commitment_steps[[1, 3]] = 16
    slots.leftover_steps[1] = 4
    actions = _answer(model, slots, [1, 3])
    np.testing.assert_array_equal(actions[0, :4], slots.leftover[1, :4])
    assert (actions[0, 4] != slots.leftover[1, 4]).any()
    np.testing.assert_array_equal(actions[1, :8], slots.leftover[3, :8])
    assert (actions[1, 8] != slots.leftover[3, 8]).any()


def test_guidance_pulls_the_free_rows_towards_the_leftover(
    model: StagedModel, slots: SlotArrays
) -> None:
    guided = _answer(model, slots, [5])[0]
    slots.commitment_steps[5] = 0
    free = _answer(model, slots, [5])[0]
    following, leftover = slice(7, 10), slots.leftover[5]
    gap = np.abs(guided[following] - leftover[following]).mean()
    assert gap < 0.5 * np.abs(free[following] - leftover[following]).mean()


def test_answer_depends_on_picture_state_words_and_seed(
    model: StagedModel, slots: SlotArrays
) -> None:
    first = _answer(model, slots, [0])

    def moved() -> float:
        change = float(np.abs(_answer(model, slots, [0]) - first).max())
        write_request(slots, 0, seed=0, statistics=aloha_statistics())
        return change

    slots.images[2][0] = 0
    assert moved() > 1e-3
    slots.state[0, 5] += 0.5
    assert moved() > 1e-3
    write_instruction(slots, 0, 'fold the towel')
    assert moved() > 1e-3
    slots.seed[0] = 2**64 - 1
    assert moved() > 1e-3


def test_missing_camera_is_not_looked_at(model: StagedModel, slots: SlotArrays) -> None:
    seen = _answer(model, slots, [0])
    slots.camera_present[0, 1] = False
    without = _answer(model, slots, [0])
    assert np.abs(without - seen).max() > 1e-3
    slots.images[1][0] = 255
    np.testing.assert_array_equal(_answer(model, slots, [0]), without)


def test_stages_of_different_slots_run_at_once_as_they_do_one_by_one(
    model: StagedModel, slots: SlotArrays
) -> None:
    """Three lanes work on different slots; none gets another's answer (case SL-01)."""
    serial = np.concatenate([_answer(model, slots, [slot]) for slot in range(_SLOTS)])
    for _ in range(3):
        slots.actions[:] = 0
        with ThreadPoolExecutor(max_workers=3) as lanes:
            for beat in range(_SLOTS + 2):  # a pipeline: at each beat three slots, three stages
                running = [
                    lanes.submit(_run, model, stage, [beat - stage])
                    for stage in Stage
                    if 0 <= beat - stage < _SLOTS
                ]
                for unit in running:
                    unit.result()
        np.testing.assert_allclose(slots.actions, serial, atol=1e-5)


def _refused(model: StagedModel, text: str) -> None:
    """Assert that Prefill refuses slot 0 and says why."""
    found: Rejected = _run(model, Stage.PREFILL, [0])[0]
    assert found.reason is Reason.REJECTED_INSTRUCTION
    assert text in found.detail


def test_longest_instruction_of_the_contract_fits(model: StagedModel, slots: SlotArrays) -> None:
    slots.state[0] = aloha_statistics().q99
    write_instruction(slots, 0, 'x' * model.contract.max_instruction_bytes)
    assert np.isfinite(_answer(model, slots, [0])).all()


def test_prompt_that_does_not_fit_is_refused_and_not_cut(
    model: StagedModel, slots: SlotArrays
) -> None:
    longer = empty_slots(echo_contract(), 1)  # has room for 400 bytes
    write_instruction(longer, 0, 'x' * 400)
    roomy = SlotArrays(
        **{field.name: getattr(slots, field.name) for field in fields(slots)}
        | {'instruction': longer.instruction, 'instruction_bytes': longer.instruction_bytes}
    )
    model.bind(roomy, _PLAN)
    room = {'tiny': 192, 'tiny_smolvla': 96, 'tiny_wall': 512}[model.contract.name]
    _refused(model, f'room for {room}; shorten the instruction of 400')


def test_instruction_that_is_not_utf8_is_refused(model: StagedModel, slots: SlotArrays) -> None:
    slots.instruction[0, :2] = 0xFF
    _refused(model, 'not UTF-8')


def test_warm_up_leaves_slots_and_state_as_they_were(
    model: StagedModel, slots: SlotArrays
) -> None:
    _run(model, Stage.VIT, [0])
    _run(model, Stage.PREFILL, [0])
    watched = (slots.images[0], slots.images[2], slots.state, slots.instruction)
    before = [array.tobytes() for array in watched]
    slots.actions[0] = 7
    model.warm_up()
    assert [array.tobytes() for array in watched] == before
    assert (slots.actions[0] == 7).all()
    _run(model, Stage.ACTION, [0])
    continued = slots.actions[0].copy()
    np.testing.assert_array_equal(_answer(model, slots, [0])[0], continued)


@pytest.mark.parametrize('name', TINY)
def test_unbound_model_says_so(name: str) -> None:
    fresh = make_model(name, ModelOptions(device='cpu'))
    with pytest.raises(ModelError, match=r'bind\(\)'):
        _run(fresh, Stage.VIT, [0])
    with pytest.raises(ModelError, match=r'bind\(\)'):
        fresh.warm_up()


def test_slots_of_another_contract_are_refused(model: StagedModel) -> None:
    other = replace(echo_contract(), joint_names=('waist', 'elbow', 'gripper'))
    with pytest.raises(ConfigError, match=r'\(16, 3\)'):
        model.bind(empty_slots(other, 1), _PLAN)


def test_model_starts_without_the_compiler_of_torch() -> None:
    """An engine must be back within seconds, and loading torch._dynamo alone takes three."""
    code = (
        'import sys, torch\n'
        'torch.set_num_threads(1)\n'  # threads that wait for each other cost three times as much
        'from xinfer_ros.core.batch import LanePlan\n'
        'from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes\n'
        'from xinfer_ros.models.registry import make_model\n'
        f'for name in {TINY}:\n'
        '    model = make_model(name)\n'
        '    memory = bytearray(slot_memory_bytes(model.contract, 1))\n'
        '    slots = slot_arrays(model.contract, 1, memoryview(memory))\n'
        '    model.bind(slots, LanePlan(num_states=1))\n'
        '    model.warm_up()\n'
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


def test_narrow_weights_give_nearly_the_same_answers(
    model: StagedModel, slots: SlotArrays
) -> None:
    """Requests differ by radians from each other, so a mixed-up answer would not pass."""
    expected = _answer(model, slots, [0, 2, 3])
    narrow = make_model(model.contract.name, ModelOptions(device='cpu', dtype='bfloat16'))
    narrow.bind(slots, LanePlan(num_states=_SLOTS, max_batch=(3, 3, 3)))
    found = _answer(narrow, slots, [0, 2, 3])
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.5)
    assert (found != expected).any()
    assert np.abs(expected[0] - expected[1:]).max(axis=(1, 2)).min() > 1.0
