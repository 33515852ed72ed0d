# SPDX-License-Identifier: Apache-2.0
"""A policy with LeRobot's interface; a stand-in, since LeRobot itself is not installed here."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.lerobot import LeRobotPolicy
from xinfer_ros.models.opaque import OpaqueModel

from .filled_slots import empty_slots, write_request

CONTRACT = ModelContract(
    name='act',
    cameras=(CameraSpec(name='top', height=4, width=6),),
    joint_names=('a', 'b', 'c'),
    horizon=8,
    max_commitment_steps=4,
)
MEAN, STD = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 1.0, 2.0])


def preprocess(frame: dict[str, Any]) -> dict[str, Any]:
    """Normalise the state, add the batch axis and make the task a list, as a pipeline does."""
    batch: dict[str, Any] = {'task': [frame['task']]}
    for name, value in frame.items():
        if name.startswith('observation.'):
            batch[name] = value.unsqueeze(0)
    batch['observation.state'] = (batch['observation.state'] - MEAN) / STD
    return batch


def postprocess(action: Tensor) -> Tensor:
    """Take rows back into robot units; like the real pipeline, of one time step alone."""
    assert action.ndim == 2
    return action * STD + MEAN


class StandIn:
    """The interface of a ``PreTrainedPolicy``: answers its state, brightness and noise."""

    def __init__(self, rows: int = 10, shape: tuple[int, ...] | None = None) -> None:
        self._rows, self._shape = rows, shape
        self.batches: list[dict[str, Any]] = []

    def predict_action_chunk(self, batch: dict[str, Any]) -> Tensor:
        """Return a chunk of the policy's own length."""
        self.batches.append(batch)
        if self._shape is not None:
            return torch.zeros(self._shape)
        rows = torch.arange(self._rows)[None, :, None] * 0.01
        return batch['observation.state'][:, None] + rows + 0.001 * torch.randn(1, self._rows, 3)

    def select_action(self, batch: dict[str, Any]) -> Tensor:
        """Stand for the call that shares one queue of actions among all robots."""
        raise AssertionError('select_action is never called')


def _asked(policy: StandIn, **changes: Any) -> tuple[OpaqueModel, Any]:
    wrapped = LeRobotPolicy(policy, preprocess, postprocess, CONTRACT, **changes)
    model, slots = OpaqueModel(CONTRACT, wrapped), empty_slots(CONTRACT, 3)
    for slot in range(3):
        write_request(slots, slot, seed=slot % 2, leftover_steps=5, commitment_steps=2 * slot)
    model.bind(slots, LanePlan(num_states=3))
    return model, slots


def test_chunk_comes_back_in_robot_units_and_is_cut_to_the_horizon() -> None:
    model, slots = _asked(StandIn())
    assert model.run(Stage.ACTION, Batch(slot_ids=(0,), state_ids=(0,))) == {}
    expected = slots.state[0] + np.arange(8)[:, None] * 0.01 * STD.numpy()
    np.testing.assert_allclose(slots.actions[0], expected, atol=0.02)


def test_policy_gets_features_by_name_in_its_ranges() -> None:
    policy = StandIn()
    model, slots = _asked(policy)
    model.run(Stage.ACTION, Batch(slot_ids=(1,), state_ids=(1,)))
    batch = policy.batches[0]
    assert sorted(batch) == ['observation.images.top', 'observation.state', 'task']
    picture = batch['observation.images.top']
    assert (picture.shape, picture.dtype) == ((1, 3, 4, 6), torch.float32)
    expected = slots.images[0][1].astype(np.float32).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(picture[0].numpy(), expected, atol=1e-6)
    assert batch['task'] == ['stack 1 cubes please']


def test_cameras_may_have_other_names_in_the_policy() -> None:
    policy = StandIn()
    model, _ = _asked(policy, image_keys={'top': 'observation.image'})
    model.warm_up()
    assert 'observation.image' in policy.batches[0]


def test_equal_seeds_give_equal_chunks_whatever_was_asked_before() -> None:
    model, slots = _asked(StandIn())
    first = []
    for slot in (0, 1, 0):
        model.run(Stage.ACTION, Batch(slot_ids=(slot,), state_ids=(slot,)))
        first.append(slots.actions[slot].copy())
    np.testing.assert_array_equal(first[0], first[2])
    noise = [rows[2:] - slots.state[slot] for slot, rows in zip((0, 1), first, strict=False)]
    assert np.abs(noise[0] - noise[1]).max() > 1e-4


def test_frozen_rows_are_written_over_the_policys() -> None:
    model, slots = _asked(StandIn())
    model.run(Stage.ACTION, Batch(slot_ids=(2,), state_ids=(2,)))
    np.testing.assert_array_equal(slots.actions[2, :4], slots.leftover[2, :4])


@pytest.mark.parametrize('shape', [(3,), (2, 8, 3), (1, 1, 8, 3)])
def test_chunk_without_a_horizon_is_an_error_with_expected_and_received(
    shape: tuple[int, ...],
) -> None:
    model, _ = _asked(StandIn(shape=shape))
    with pytest.raises(ModelError, match=r'must return shape \(1, H, action_dim\)') as caught:
        model.warm_up()
    assert str(shape) in str(caught.value)


def test_chunk_shorter_than_the_contract_is_an_error() -> None:
    model, _ = _asked(StandIn(rows=5))
    with pytest.raises(ModelError, match=r'shape \(8, 3\), rows and joints; received \(5, 3\)'):
        model.warm_up()
