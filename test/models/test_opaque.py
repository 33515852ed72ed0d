# SPDX-License-Identifier: Apache-2.0
"""Any policy object with one call, as a model of one stage."""

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.opaque import OpaqueModel, PolicyObservation
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.registry import echo_contract, make_model

from .filled_slots import empty_slots, write_request

CONTRACT = ModelContract(
    name='mine',
    cameras=(
        CameraSpec(name='top', height=4, width=6),
        CameraSpec(name='wrist', height=2, width=2),
    ),
    joint_names=('a', 'b', 'c'),
    horizon=8,
    max_commitment_steps=4,
)


class AnyPolicy:
    """Keeps what it was asked; answers as told, else with its state in every row."""

    def __init__(self, answer: Callable[[PolicyObservation], Any] | None = None) -> None:
        self.asked: list[PolicyObservation] = []
        self._answer = answer

    def predict(self, observation: PolicyObservation) -> Any:
        """Answer an observation."""
        self.asked.append(observation)
        if self._answer is not None:
            return self._answer(observation)
        return np.tile(observation.state, (CONTRACT.horizon, 1))


def _bound(policy: AnyPolicy, **changes: Any) -> tuple[OpaqueModel, SlotArrays]:
    model = OpaqueModel(CONTRACT, policy, **changes)
    slots = empty_slots(CONTRACT, 4)
    for slot in range(4):
        write_request(slots, slot, seed=slot + 1, leftover_steps=5, commitment_steps=slot)
    model.bind(slots, LanePlan(num_states=4))
    return model, slots


def _batch(*slot_ids: int) -> Batch:
    return Batch(slot_ids=slot_ids, state_ids=slot_ids)


def test_policy_is_one_stage_and_sees_the_request_of_its_slot() -> None:
    policy = AnyPolicy()
    model, slots = _bound(policy)
    assert model.contract.stages == (Stage.ACTION,)
    slots.camera_present[2, 1] = False
    assert model.run(Stage.ACTION, _batch(2)) == {}
    seen = policy.asked[0]
    assert list(seen.images) == ['top']
    np.testing.assert_array_equal(seen.images['top'], slots.images[0][2])
    np.testing.assert_array_equal(seen.state, slots.state[2])
    np.testing.assert_array_equal(seen.leftover, slots.leftover[2, :5])
    assert (seen.instruction, seen.frozen_steps, seen.seed) == ('stack 3 cubes', 2, 3)


def test_frozen_rows_are_those_of_the_leftover_and_the_others_the_policys() -> None:
    model, slots = _bound(AnyPolicy())
    slots.commitment_steps[3] = 8  # 5 rows are left, 4 are honoured
    assert model.run(Stage.ACTION, _batch(0, 3)) == {}
    np.testing.assert_array_equal(slots.actions[0], np.tile(slots.state[0], (8, 1)))
    np.testing.assert_array_equal(slots.actions[3, :4], slots.leftover[3, :4])
    np.testing.assert_array_equal(slots.actions[3, 4:], np.tile(slots.state[3], (4, 1)))
    assert not slots.actions[[1, 2]].any()


def test_policy_gets_copies() -> None:
    """It may write into them: the slots are shared with the front end."""

    def vandal(observation: PolicyObservation) -> Any:
        observation.images['top'][:] = 0
        observation.state[:] = observation.leftover[:] = 9
        return np.zeros((8, 3))

    model, slots = _bound(AnyPolicy(vandal))
    before = [slots.images[0].copy(), slots.state.copy(), slots.leftover.copy()]
    model.run(Stage.ACTION, _batch(3))
    for was, now in zip(before, (slots.images[0], slots.state, slots.leftover), strict=True):
        np.testing.assert_array_equal(was, now)
    np.testing.assert_array_equal(slots.actions[3, :3], slots.leftover[3, :3])


WRONG = {
    'too few rows': (np.zeros((7, 3)), r'shape \(8, 3\), rows and joints; received \(7, 3\)'),
    'too many joints': (np.zeros((8, 32)), r'received \(8, 32\)'),
    'a batch axis': (np.zeros((1, 8, 3)), r'received \(1, 8, 3\)'),
    'nothing': (None, r'received \(\)'),
    'words': ('left, then right', 'the policy has failed: could not convert'),
    'a NaN': (np.where(np.eye(8, 3), np.nan, 0), 'finite values; received nan in row 0, column 0'),
    'an infinite value': (np.full((8, 3), -np.inf), 'received -inf in row 0, column 0'),
    'more than a float32': (np.full((8, 3), 1e300), 'received inf in row 0'),
}


@pytest.mark.filterwarnings('ignore:overflow encountered in cast')
@pytest.mark.parametrize(('answer', 'words'), WRONG.values(), ids=list(WRONG))
def test_answer_that_no_robot_can_use_is_an_error_with_expected_and_received(
    answer: Any, words: str
) -> None:
    model, slots = _bound(AnyPolicy(lambda observation: answer))
    with pytest.raises(ModelError, match=words):
        model.run(Stage.ACTION, _batch(0))
    with pytest.raises(ModelError, match=words):
        model.warm_up()
    assert not slots.actions.any()


def test_exception_of_the_policy_is_a_model_error_with_its_cause() -> None:
    def broken(observation: PolicyObservation) -> Any:
        raise ZeroDivisionError('the gripper is nowhere')

    model, _ = _bound(AnyPolicy(broken))
    with pytest.raises(ModelError, match='mine: the policy has failed: the gripper') as caught:
        model.run(Stage.ACTION, _batch(0, 1))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_refusal_of_the_policy_concerns_its_own_request_alone() -> None:
    def choosy(observation: PolicyObservation) -> Any:
        if 'stack 2' in observation.instruction:
            raise Rejected(Reason.REJECTED_INSTRUCTION, 'two cubes are too few')
        return np.ones((8, 3))

    model, slots = _bound(AnyPolicy(choosy))
    refused = model.run(Stage.ACTION, _batch(0, 1, 2))
    assert {slot: (r.reason, r.detail) for slot, r in refused.items()} == {
        1: (Reason.REJECTED_INSTRUCTION, 'two cubes are too few')
    }
    assert slots.actions[[0, 2]].any(axis=(1, 2)).all()
    assert model.run(Stage.ACTION, _batch(1)).keys() == {1}


def test_failure_on_one_request_of_a_batch_leaves_the_others_their_answers() -> None:
    def moody(observation: PolicyObservation) -> Any:
        if observation.seed == 2:
            raise RuntimeError('not this one')
        return np.ones((8, 3))

    model, slots = _bound(AnyPolicy(moody))
    refused = model.run(Stage.ACTION, _batch(0, 1, 3))
    assert {slot: r.reason for slot, r in refused.items()} == {1: Reason.MODEL_FAILED}
    assert 'not this one' not in refused[1].detail  # what a policy says is for the log
    assert slots.actions[3, 3:].all()
    with pytest.raises(ModelError, match='not this one'):
        model.run(Stage.ACTION, _batch(1))


@pytest.mark.parametrize('thread_safe', [False, True])
def test_workers_take_turns_unless_the_policy_is_thread_safe(thread_safe: bool) -> None:
    """Two calls that wait for each other end together, or the first one waits in vain."""
    both = threading.Barrier(2)
    met: list[bool] = []

    def meet(observation: PolicyObservation) -> Any:
        try:
            both.wait(30.0 if thread_safe else 0.05)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return np.ones((8, 3))

    model, _ = _bound(AnyPolicy(meet), thread_safe=thread_safe)
    threads = [
        threading.Thread(target=model.run, args=(Stage.ACTION, _batch(slot))) for slot in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [thread_safe] * 2


def test_warming_up_asks_once_and_leaves_the_slot_as_it_was() -> None:
    policy = AnyPolicy()
    model, slots = _bound(policy)
    before = slots.state.copy(), slots.instruction.copy(), slots.images[0].copy()
    model.warm_up()
    assert [seen.instruction for seen in policy.asked] == ['warm up']
    now = slots.state, slots.instruction, slots.images[0]
    for was, is_now in zip(before, now, strict=True):
        np.testing.assert_array_equal(was, is_now)
    assert not slots.actions.any()


def test_other_stages_and_unbound_models_are_errors() -> None:
    model, _ = _bound(AnyPolicy())
    with pytest.raises(ModelError, match='mine has no stage PREFILL, only ACTION'):
        model.run(Stage.PREFILL, _batch(0))
    unbound = OpaqueModel(CONTRACT, AnyPolicy())
    for call in (unbound.warm_up, lambda: unbound.run(Stage.ACTION, _batch(0))):
        with pytest.raises(ModelError, match='bind'):
            call()
    with pytest.raises(ConfigError, match=r'says \(8, 3\)'):
        unbound.bind(empty_slots(echo_contract(), 1), LanePlan(num_states=1))


@pytest.fixture
def home_made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give an importable module with factories."""
    module = ModuleType('home_made_policies')
    module.options = []

    def good(options: ModelOptions) -> Any:
        module.options.append(options)
        return CONTRACT, AnyPolicy()

    module.good = good
    module.whole = lambda options: OpaqueModel(CONTRACT, AnyPolicy(), thread_safe=True)
    module.half = lambda options: CONTRACT
    module.mute = lambda options: (CONTRACT, object())
    module.number = 7
    monkeypatch.setitem(sys.modules, 'home_made_policies', module)
    return module


def test_policy_is_named_in_the_configuration(home_made: ModuleType) -> None:
    options = ModelOptions(seed=5)
    model = make_model('python:home_made_policies:good', options)
    assert isinstance(model, OpaqueModel)
    assert model.contract.name == 'mine'
    assert home_made.options == [options]
    assert make_model('python:home_made_policies:whole').contract.stages == (Stage.ACTION,)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('python:', 'write python:package.module:factory'),
        ('python:home_made_policies', 'write python:package.module:factory'),
        ('python::good', 'write python:package.module:factory'),
        ('python:no_such_package.policies:good', 'No module named .* PYTHONPATH'),
        ('python:home_made_policies:bad', 'has no function bad'),
        ('python:home_made_policies:number', 'has no function number'),
        ('python:home_made_policies:half', 'it returned ModelContract'),
        ('python:home_made_policies:mute', 'it returned tuple'),
    ],
)
def test_factory_that_cannot_be_used_stops_the_start_with_the_remedy(
    home_made: ModuleType, name: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        make_model(name)
    assert name in str(caught.value)


def test_factory_may_return_a_model_in_stages(home_made: ModuleType) -> None:
    staged = EchoModel(echo_contract())
    home_made.in_stages = lambda options: staged  # type: ignore[attr-defined]
    made = make_model('python:home_made_policies:in_stages')
    assert made is staged
    assert made.contract.stages == tuple(Stage)


def test_contract_is_the_policys_own(home_made: ModuleType) -> None:
    with pytest.raises(ConfigError, match='contract of its own'):
        make_model('python:home_made_policies:good', contract=echo_contract())
