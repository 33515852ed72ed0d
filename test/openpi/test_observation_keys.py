# SPDX-License-Identifier: Apache-2.0
"""Observations of openpi's robots, flat and nested, in the model's terms."""

from typing import Any

import numpy as np
import pytest

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.observation_keys import ObservationKeys


def _contract(*cameras: str, joints: int = 8) -> ModelContract:
    return ModelContract(
        name='some',
        cameras=tuple(CameraSpec(name=name, height=4, width=4) for name in cameras),
        joint_names=tuple(f'j{number}' for number in range(joints)),
        horizon=8,
        max_commitment_steps=4,
    )


def _picture(level: int, *shape: int) -> Any:
    return np.full(shape or (6, 8, 3), level, np.uint8)


def _levels(keys: ObservationKeys, observation: dict[str, Any]) -> dict[str, int]:
    images = keys.find(observation).images
    return {frame.name: int(np.frombuffer(frame.data, np.uint8)[0]) for frame in images}


ALOHA = {
    'state': np.arange(14.0),
    'images': {
        name: _picture(level, 3, 6, 8)
        for level, name in enumerate(('cam_high', 'cam_low', 'cam_left_wrist', 'cam_right_wrist'))
    },
    'prompt': 'fold',
}
LIBERO = {
    'observation/state': np.arange(8.0),
    'observation/image': _picture(1),
    'observation/wrist_image': _picture(2),
    'prompt': 'stack',
}
DROID = {
    'observation/exterior_image_1_left': _picture(3),
    'observation/wrist_image_left': _picture(4),
    'observation/joint_position': np.arange(7.0),
    'observation/gripper_position': np.array([9.0]),
    'prompt': 'wipe',
}


def test_an_aloha_observation_is_understood() -> None:
    keys = ObservationKeys(_contract('top', 'left_wrist', 'right_wrist', joints=14))
    assert _levels(keys, ALOHA) == {'top': 0, 'left_wrist': 2, 'right_wrist': 3}
    found = keys.find(ALOHA)
    np.testing.assert_array_equal(found.state, np.arange(14, dtype=np.float32))
    assert found.state.dtype == np.float32
    assert found.prompt == 'fold'


def test_a_libero_observation_is_understood_flat_and_nested() -> None:
    keys = ObservationKeys(_contract('base_0_rgb', 'left_wrist_0_rgb'))
    assert _levels(keys, LIBERO) == {'base_0_rgb': 1, 'left_wrist_0_rgb': 2}
    nested: dict[str, Any] = {'prompt': LIBERO['prompt'], 'observation': {}}
    for name in ('state', 'image', 'wrist_image'):
        nested['observation'][name] = LIBERO[f'observation/{name}']
    assert _levels(keys, nested) == {'base_0_rgb': 1, 'left_wrist_0_rgb': 2}
    np.testing.assert_array_equal(keys.find(nested).state, np.arange(8))


def test_a_droid_observation_is_understood_and_its_state_joined() -> None:
    keys = ObservationKeys(_contract('base_0_rgb', 'left_wrist_0_rgb'))
    assert _levels(keys, DROID) == {'base_0_rgb': 3, 'left_wrist_0_rgb': 4}
    np.testing.assert_array_equal(keys.find(DROID).state, [0, 1, 2, 3, 4, 5, 6, 9])
    scalar = DROID | {'observation/gripper_position': 9.0}
    np.testing.assert_array_equal(keys.find(scalar).state, [0, 1, 2, 3, 4, 5, 6, 9])


def test_configured_keys_come_before_the_usual_ones() -> None:
    configured = (('a/b', 'top'), ('q', 'state'), ('w', 'state'), ('say', 'prompt'))
    keys = ObservationKeys(_contract('top', joints=3), configured)
    observation = {
        'a': {'b': _picture(7)}, 'images': {'top': _picture(8)}, 'q': [1, 2], 'w': 3.0,
        'say': b'go', 'prompt': 'stay', 'state': [0.0],
    }  # fmt: skip
    observation['say'] = memoryview(b'go')
    assert _levels(keys, observation) == {'top': 7}
    found = keys.find(observation)
    np.testing.assert_array_equal(found.state, [1, 2, 3])
    assert found.prompt == 'go'
    with pytest.raises(Rejected, match=r'camera top: needed is a/b; found are images/top'):
        keys.find({'images': {'top': _picture(8)}})


def test_a_name_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(Rejected, match='some knows top, state, prompt'):
        ObservationKeys(_contract('top'), (('observation/image', 'front'),))


def test_what_is_missing_is_named_with_what_was_found() -> None:
    keys = ObservationKeys(_contract('top'))
    with pytest.raises(Rejected) as caught:
        keys.find({'images': {'front': _picture(1)}, 'state': np.zeros(8)})
    assert caught.value.reason is Reason.MISSING_CAMERA
    assert caught.value.detail == (
        'camera top: needed is images/top or observation/images/top or observation/top; found '
        'are images/front, state; send it under such a key, or name its key in websocket_keys of '
        'the server'
    )
    with pytest.raises(Rejected, match='state: needed is state or observation/state'):
        keys.find({'images': {'top': _picture(1)}})
    assert keys.find({'images': {'top': _picture(1)}, 'state': [0.0]}).prompt is None


PICTURES = [
    (_picture(1, 6, 8, 3), ('rgb8', 6, 8, 24)),
    (_picture(1, 3, 6, 8), ('rgb8', 6, 8, 24)),
    (_picture(1, 6, 8, 1), ('mono8', 6, 8, 8)),
    (_picture(1, 1, 6, 8), ('mono8', 6, 8, 8)),
    (_picture(1, 6, 8, 4), ('rgba8', 6, 8, 32)),
]


@pytest.mark.parametrize(('picture', 'form'), PICTURES)
def test_pictures_are_taken_with_channels_first_or_last(picture: Any, form: Any) -> None:
    keys = ObservationKeys(_contract('top'))
    frame = keys.find({'images': {'top': picture}, 'state': [0.0]}).images[0]
    assert (frame.encoding, frame.height, frame.width, frame.step) == form
    assert not frame.compressed


def test_a_picture_with_channels_first_keeps_its_colours() -> None:
    planes = np.stack([_picture(level, 6, 8) for level in (10, 20, 30)])
    keys = ObservationKeys(_contract('top'))
    frame = keys.find({'images': {'top': planes}, 'state': [0.0]}).images[0]
    assert list(np.frombuffer(frame.data, np.uint8)[:6]) == [10, 20, 30, 10, 20, 30]


def test_a_picture_with_channels_last_is_not_copied() -> None:
    picture = _picture(1)
    keys = ObservationKeys(_contract('top'))
    frame = keys.find({'images': {'top': picture}, 'state': [0.0]}).images[0]
    assert np.shares_memory(frame.data, picture)


def test_a_jpeg_is_passed_on_as_it_came() -> None:
    keys = ObservationKeys(_contract('top'))
    file = memoryview(b'\xff\xd8 and so on')
    frame = keys.find({'images': {'top': file}, 'state': [0.0]}).images[0]
    assert (frame.compressed, frame.encoding, bytes(frame.data)) == (True, 'jpeg', bytes(file))


@pytest.mark.parametrize(
    ('picture', 'words'),
    [
        (np.zeros((6, 8, 3), np.float32), 'received float32 of shape (6, 8, 3)'),
        (np.zeros((6, 8), np.uint8), 'received uint8 of shape (6, 8)'),
        (np.zeros((2, 6, 8, 3), np.uint8), 'received uint8 of shape (2, 6, 8, 3)'),
        (np.zeros((0, 8, 3), np.uint8), 'received uint8 of shape (0, 8, 3)'),
        (np.zeros((5, 6, 7), np.uint8), '7 channels in the last place of (5, 6, 7)'),
        (memoryview(b'GIF89a'), '6 bytes that are neither JPEG nor PNG'),
        ('x', 'received str'),
        (None, 'received NoneType'),
    ],
)
def test_a_picture_of_another_kind_is_refused(picture: Any, words: str) -> None:
    keys = ObservationKeys(_contract('top'))
    with pytest.raises(Rejected) as caught:
        keys.find({'images': {'top': picture}, 'state': [0.0]})
    assert caught.value.reason is Reason.REJECTED_IMAGE
    assert words in caught.value.detail
    assert caught.value.detail.startswith('images/top: ')


@pytest.mark.parametrize('state', ['x', None, ['a'], [[1.0]], np.zeros((2, 2)), np.array([True])])
def test_a_state_that_is_no_row_of_numbers_is_refused(state: Any) -> None:
    keys = ObservationKeys(_contract('top'))
    with pytest.raises(Rejected, match='state: expected an array of numbers') as caught:
        keys.find({'images': {'top': _picture(1)}, 'state': state})
    assert caught.value.reason is Reason.REJECTED_STATE


@pytest.mark.parametrize('prompt', [5, ['x'], memoryview(b'\xff')])
def test_a_prompt_that_is_no_text_is_refused(prompt: Any) -> None:
    keys = ObservationKeys(_contract('top'))
    with pytest.raises(Rejected) as caught:
        keys.find({'images': {'top': _picture(1)}, 'state': [0.0], 'prompt': prompt})
    assert caught.value.reason is Reason.REJECTED_INSTRUCTION
