# SPDX-License-Identifier: Apache-2.0
"""The slot memory: what one process writes, the other reads."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes

contracts = st.builds(
    lambda sizes, dim, horizon, text: ModelContract(
        name='any',
        cameras=tuple(
            CameraSpec(name=f'c{index}', height=height, width=width)
            for index, (height, width) in enumerate(sizes)
        ),
        joint_names=tuple(f'j{index}' for index in range(dim)),
        horizon=horizon,
        max_commitment_steps=horizon,
        max_instruction_bytes=text,
    ),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=3),
    st.integers(1, 15),
    st.integers(1, 7),
    st.integers(1, 70),
)
CONTRACT = ModelContract(
    name='small',
    cameras=(
        CameraSpec(name='top', height=4, width=6),
        CameraSpec(name='wrist', height=3, width=5),
    ),
    joint_names=('a', 'b', 'c'),
    horizon=7,
    max_commitment_steps=3,
    max_instruction_bytes=20,
)


def _all_arrays(slots: SlotArrays) -> list[np.ndarray]:
    values = [getattr(slots, field.name) for field in dataclasses.fields(slots)]
    return [*values[0], *values[1:]]


def test_arrays_have_the_shapes_of_the_contract() -> None:
    slots = slot_arrays(CONTRACT, 5, memoryview(bytearray(slot_memory_bytes(CONTRACT, 5))))
    assert slots.num_slots == 5
    assert [image.shape for image in slots.images] == [(5, 4, 6, 3), (5, 3, 5, 3)]
    shapes = {
        field.name: getattr(slots, field.name).shape
        for field in dataclasses.fields(slots)
        if field.name != 'images'
    }
    assert shapes == {
        'camera_present': (5, 2),
        'state': (5, 3),
        'instruction': (5, 20),
        'instruction_bytes': (5,),
        'leftover': (5, 7, 3),
        'leftover_steps': (5,),
        'commitment_steps': (5,),
        'seed': (5,),
        'actions': (5, 7, 3),
    }
    kinds = [array.dtype for array in _all_arrays(slots)]
    expected = ['u1', 'u1', '?', 'f4', 'u1', 'i4', 'f4', 'i4', 'i4', 'u8', 'f4']
    assert kinds == [np.dtype(kind) for kind in expected]


@settings(deadline=None, derandomize=True)
@given(contracts, st.integers(1, 4))
def test_two_maps_over_one_memory_see_the_same(contract: ModelContract, num_slots: int) -> None:
    memory = memoryview(bytearray(slot_memory_bytes(contract, num_slots)))
    ours, theirs = (slot_arrays(contract, num_slots, memory) for _ in range(2))
    generator = np.random.default_rng(0)
    for array in _all_arrays(ours):
        array[...] = generator.integers(0, 2, array.shape).astype(array.dtype)
    for mine, other in zip(_all_arrays(ours), _all_arrays(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)
        assert np.shares_memory(mine, other)


@settings(deadline=None, derandomize=True)
@given(contracts, st.integers(1, 4))
def test_arrays_do_not_overlap(contract: ModelContract, num_slots: int) -> None:
    memory = memoryview(bytearray(slot_memory_bytes(contract, num_slots)))
    arrays = _all_arrays(slot_arrays(contract, num_slots, memory))
    spans = sorted(
        (array.__array_interface__['data'][0], array.__array_interface__['data'][0] + array.nbytes)
        for array in arrays
    )
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@settings(deadline=None, derandomize=True)
@given(contracts, st.integers(1, 4))
def test_last_array_ends_within_the_stated_size(contract: ModelContract, num_slots: int) -> None:
    """A guard behind the memory stays untouched when every array is filled."""
    size = slot_memory_bytes(contract, num_slots)
    block = bytearray(size + 64)
    for array in _all_arrays(slot_arrays(contract, num_slots, memoryview(block))):
        array.view(np.uint8)[...] = 255
    assert block[size:] == bytes(64)


def test_writing_one_slot_leaves_the_others_alone() -> None:
    slots = slot_arrays(CONTRACT, 3, memoryview(bytearray(slot_memory_bytes(CONTRACT, 3))))
    for array in _all_arrays(slots):
        array[1] = 1
    for array in _all_arrays(slots):
        assert array[1].all()
        assert not array[[0, 2]].any()


def test_memory_that_is_too_small_is_refused_with_both_sizes() -> None:
    needed = slot_memory_bytes(CONTRACT, 2)
    with pytest.raises(ValueError, match=f'has {needed - 1} bytes, {needed} are needed'):
        slot_arrays(CONTRACT, 2, memoryview(bytearray(needed - 1)))


def test_action_dim_is_the_number_of_joints() -> None:
    assert CONTRACT.action_dim == 3
