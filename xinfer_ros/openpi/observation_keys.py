# SPDX-License-Identifier: Apache-2.0
"""Where in an observation of openpi the cameras, the state and the instruction stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.pictures import camera_frame
from xinfer_ros.openpi.unpacker import Value, described

STATE, PROMPT = 'state', 'prompt'
_PLACES = ('images/{}', 'observation/images/{}', 'observation/{}', 'observation.images.{}', '{}')
# what openpi's ALOHA, LIBERO and DROID robots call the cameras of π0.5 and of ALOHA
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    'top': ('cam_high',),
    'base_0_rgb': ('cam_high', 'image', 'exterior_image_1_left'),
    'left_wrist_0_rgb': ('cam_left_wrist', 'wrist_image', 'wrist_image_left'),
    'right_wrist_0_rgb': ('cam_right_wrist',),
}
_STATES = (
    ('state',),
    ('observation/state',),
    ('observation.state',),
    ('observation/joint_position', 'observation/gripper_position'),
)
_PROMPTS = (('prompt',), ('observation/prompt',), ('task',))
_SHOWN_KEYS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What of an observation the model sees.

    :param state: ``(action_dim,)`` float32 if it is what it should be; checked elsewhere
    :param prompt: None if the robot sent none
    """

    images: tuple[CameraFrame, ...]
    state: Rows
    prompt: str | None


class ObservationKeys:
    """
    Finds what a model needs in an observation, flat or nested.

    :param contract: of the model
    :param configured: key and name, see ``websocket_keys``; what is not named there stands under
        the usual keys
    :raises Rejected: REJECTED_CAMERAS if a name is none of the model's
    """

    def __init__(
        self, contract: ModelContract, configured: Sequence[tuple[str, str]] = ()
    ) -> None:
        names = [camera.name for camera in contract.cameras]
        for key, name in configured:
            if name not in (*names, STATE, PROMPT):
                raise Rejected(
                    Reason.REJECTED_CAMERAS,
                    f'websocket_keys has {key}={name}; {contract.name} knows '
                    f'{", ".join((*names, STATE, PROMPT))}',
                )
        self._cameras = {name: _chosen(configured, name) or _usual_camera(name) for name in names}
        joined = tuple(key for key, name in configured if name == STATE)
        self._states = (joined,) if joined else _STATES
        self._prompts = _chosen(configured, PROMPT) or _PROMPTS

    def wanted(self) -> dict[str, list[str]]:
        """Return the keys under which each thing may stand, the first that is there counts."""
        places = {**self._cameras, STATE: self._states, PROMPT: self._prompts}
        return {name: [' + '.join(keys) for keys in choices] for name, choices in places.items()}

    def find(self, observation: Mapping[str, Value]) -> Found:
        """
        Return what the model sees of an observation.

        :param observation: as it came, without what concerns this server alone
        :raises Rejected: MISSING_CAMERA, REJECTED_STATE, REJECTED_INSTRUCTION or REJECTED_IMAGE;
            says what was found and what is needed
        """
        flat = flattened(observation)
        images = []
        for name, choices in self._cameras.items():
            keys = _first(choices, flat)
            if keys is None:
                raise Rejected(Reason.MISSING_CAMERA, _missing(f'camera {name}', choices, flat))
            images.append(camera_frame(name, flat[keys[0]], keys[0]))
        return Found(images=tuple(images), state=self._state(flat), prompt=self._prompt(flat))

    def _state(self, flat: Mapping[str, Value]) -> Rows:
        keys = _first(self._states, flat)
        if keys is None:
            raise Rejected(Reason.REJECTED_STATE, _missing('state', self._states, flat))
        return np.concatenate([numbers(flat[key], key, Reason.REJECTED_STATE) for key in keys])

    def _prompt(self, flat: Mapping[str, Value]) -> str | None:
        keys = _first(self._prompts, flat)
        value = None if keys is None else flat[keys[0]]
        if isinstance(value, memoryview):
            try:
                value = str(value, 'utf-8')
            except UnicodeDecodeError:
                value = 0  # neither text nor nothing
        if value is not None and not isinstance(value, str):
            raise Rejected(
                Reason.REJECTED_INSTRUCTION, f'{keys}: expected text; received {described(value)}'
            )
        return value


def flattened(observation: Mapping[str, Value], prefix: str = '') -> dict[str, Value]:
    """Return nested dictionaries as one, keys joined by a slash."""
    flat: dict[str, Value] = {}
    for key, value in observation.items():
        if isinstance(value, dict):
            flat.update(flattened(value, f'{prefix}{key}/'))
        else:
            flat[prefix + key] = value
    return flat


def numbers(value: Value, name: str, reason: Reason) -> Rows:
    """
    Return numbers of any type as a flat or scalar array of float32, ``(n,)``.

    :raises Rejected: with the reason, if they are none, or in more dimensions than one
    """
    if isinstance(value, int | float):
        value = [value]
    if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
        value = np.array(value, np.float64)
    if not isinstance(value, np.ndarray) or value.ndim > 1 or value.dtype.kind not in 'iuf':
        raise Rejected(
            reason, f'{name}: expected an array of numbers; received {described(value)}'
        )
    with np.errstate(over='ignore'):  # what is too large becomes infinite, and is refused as such
        return np.atleast_1d(value).astype(np.float32)


def _chosen(configured: Sequence[tuple[str, str]], name: str) -> tuple[tuple[str, ...], ...]:
    return tuple((key,) for key, meaning in configured if meaning == name)


def _usual_camera(name: str) -> tuple[tuple[str, ...], ...]:
    names = (name, f'cam_{name}', *_ALSO_CALLED.get(name, ()))
    return tuple((place.format(each),) for each in names for place in _PLACES)


def _first(
    choices: Sequence[tuple[str, ...]], flat: Mapping[str, Value]
) -> tuple[str, ...] | None:
    return next((keys for keys in choices if all(key in flat for key in keys)), None)


def _missing(what: str, choices: Sequence[tuple[str, ...]], flat: Mapping[str, Value]) -> str:
    needed = ' or '.join(' + '.join(keys) for keys in choices[:3])
    found = ', '.join(sorted(flat)[:_SHOWN_KEYS]) or 'nothing'
    return (
        f'{what}: needed is {needed}; found are {found}; send it under such a key, or name its '
        'key in websocket_keys of the server'
    )
