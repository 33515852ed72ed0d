# SPDX-License-Identifier: Apache-2.0
"""
The wire of RPent's VLA endpoint: JSON over HTTP, a chunk a call.

Source of the format: RLinf/RPent, its HTTP RPC and the VLA servers of its simulators. Three forms
of the call are in use, and each gets its own form of answer. The other transport of RPent, sockets
with pickled data, is not served: such bytes could run code.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.config.brain import RPENT_CAMERAS
from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.errors import Reason, Rejected

MOST_PIXELS = 4096 * 4096
_BATCHED = {'main': 'main_images', 'wrist': 'wrist_images', 'extra': 'extra_view_images'}
_TYPES = {'uint8', 'float32', 'float64', 'int32', 'int64'}
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """
    A call of the endpoint.

    :param instruction: for the model
    :param frames: pictures by RPent's names
    :param state: ``(num_joints,)`` float32
    :param is_batched: whether the answer is an array with a batch of one, as newer versions want
    """

    instruction: str
    frames: dict[str, CameraFrame]
    state: Rows
    is_batched: bool


def read_call(facts: Any) -> Prediction | None:
    """
    Return what a call asks for, None if only whether somebody is there.

    :param facts: method, args and kwargs, in JSON
    :raises Rejected: REJECTED_EPISODE, REJECTED_IMAGE or REJECTED_STATE
    """
    if not isinstance(facts, dict):
        raise Rejected(Reason.REJECTED_EPISODE, 'the call is no JSON object')
    method, args = facts.get('method'), facts.get('args') or []
    kwargs = facts.get('kwargs') or {}
    if method == 'healthz':
        return None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise Rejected(Reason.REJECTED_EPISODE, 'args must be a list, kwargs an object')
    if method == 'vla.predict':
        return _batched(args[0] if args else kwargs.get('obs'))
    if method == 'predict':
        names = ('instruction', 'images', 'state', 'mode')
        return read_predict(dict(zip(names, args, strict=False)) | kwargs)
    raise Rejected(
        Reason.REJECTED_EPISODE, f'no method {str(method)[:80]!r}; known: predict, vla.predict'
    )


def read_predict(facts: Any) -> Prediction:
    """
    Return what a call of ``predict`` asks for.

    :param facts: instruction, images (PNG in base64) and state ``[[...]]``, in JSON
    :raises Rejected: REJECTED_EPISODE, REJECTED_IMAGE or REJECTED_STATE
    """
    if not isinstance(facts, dict) or not isinstance(facts.get('images'), dict):
        raise Rejected(Reason.REJECTED_IMAGE, 'images must be an object with main')
    frames = {
        name: _png(name, block) for name, block in facts['images'].items() if block is not None
    }
    return Prediction(
        instruction=str(facts.get('instruction') or ''),
        frames=frames,
        state=_state(facts.get('state')),
        is_batched=False,
    )


def _batched(facts: Any) -> Prediction:
    if not isinstance(facts, dict):
        raise Rejected(Reason.REJECTED_EPISODE, 'vla.predict needs an observation')
    tasks = facts.get('task_descriptions') or ['']
    frames = {
        name: _raw(name, _array(facts[key]))
        for name, key in _BATCHED.items()
        if facts.get(key) is not None
    }
    return Prediction(
        instruction=str(tasks[0] if isinstance(tasks, list) else tasks),
        frames=frames,
        state=_state(_array(facts.get('states'))),
        is_batched=True,
    )


def _png(name: str, block: Any) -> CameraFrame:
    if name not in RPENT_CAMERAS:
        raise Rejected(
            Reason.REJECTED_IMAGE, f'picture {name[:40]!r}; known: {", ".join(RPENT_CAMERAS)}'
        )
    kind = str(block.get('format') or 'png').lower() if isinstance(block, dict) else ''
    if kind not in ('png', 'jpeg', 'jpg'):
        raise Rejected(Reason.REJECTED_IMAGE, f'picture {name} is {kind!r}; allowed: png, jpeg')
    return CameraFrame(
        name=name, compressed=True, encoding=kind, height=0, width=0, step=0, is_bigendian=False,
        data=_bytes(block.get('data')),
    )  # fmt: skip


def _raw(name: str, picture: npt.NDArray[Any]) -> CameraFrame:
    if picture.ndim == 4 and len(picture) == 1:
        picture = picture[0]
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3:
        raise Rejected(
            Reason.REJECTED_IMAGE,
            f'picture {name} is {picture.dtype} {picture.shape}; allowed: uint8 (1, H, W, 3), RGB',
        )
    height, width, _ = picture.shape
    return CameraFrame(
        name=name, compressed=False, encoding='rgb8', height=height, width=width, step=3 * width,
        is_bigendian=False, data=np.ascontiguousarray(picture).tobytes(),
    )  # fmt: skip


def _array(facts: Any) -> npt.NDArray[Any]:
    """Return an array of the wire; what its header says must be what it holds."""
    if isinstance(facts, list):
        try:
            return np.asarray(facts, np.float32)
        except (ValueError, TypeError, OverflowError):
            raise Rejected(Reason.REJECTED_STATE, 'a list of numbers is needed') from None
    if not isinstance(facts, Mapping) or str(facts.get('dtype')) not in _TYPES:
        raise Rejected(Reason.REJECTED_IMAGE, f'an array of {", ".join(sorted(_TYPES))} is needed')
    shape, data = facts.get('shape'), _bytes(facts.get('__ndarray__'))
    good = isinstance(shape, list) and all(isinstance(n, int) and 0 < n < 2**20 for n in shape)
    size = np.dtype(facts['dtype']).itemsize
    if not good or math.prod(shape or ()) * size != len(data) or len(data) > 4 * MOST_PIXELS:
        raise Rejected(
            Reason.REJECTED_IMAGE,
            f'{len(data)} bytes for {facts["dtype"]} of shape {str(shape)[:80]}',
        )
    return np.frombuffer(data, facts['dtype']).reshape(shape)


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise Rejected(Reason.REJECTED_IMAGE, 'data must be base64') from None


def _state(values: Any) -> Rows:
    try:
        state = np.asarray(values, np.float32)
    except (ValueError, TypeError, OverflowError):
        state = np.zeros(0, np.float32)
    if state.ndim == 2 and len(state) == 1:
        state = state[0]
    if state.ndim != 1 or not state.size or not np.isfinite(state).all():
        raise Rejected(
            Reason.REJECTED_STATE,
            f'the state has shape {state.shape}; one robot with finite numbers is needed, [[…]]',
        )
    return state


def answer(call: Prediction, rows: Rows) -> dict[str, Any]:
    """
    Return the result of a call, in the form that it wants.

    :param rows: ``(H, num_joints)`` float32
    """
    batch = np.ascontiguousarray(rows[None], np.float32)
    if call.is_batched:
        return {
            '__ndarray__': base64.b64encode(batch.tobytes()).decode('ascii'),
            'dtype': 'float32',
            'shape': list(batch.shape),
        }
    return {'actions': batch.tolist(), 'shape': list(batch.shape), 'dtype': 'float32'}
