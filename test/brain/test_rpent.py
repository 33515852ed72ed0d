# SPDX-License-Identifier: Apache-2.0
"""RPent's VLA endpoint: each form of its call, and the answer that goes with it."""

import asyncio
import base64
from typing import Any

import aiohttp
import numpy as np
import pytest

from xinfer_ros.brain.rpent import Prediction, Rows, answer, read_call
from xinfer_ros.brain.rpent_server import MOST_BYTES, RpentServer
from xinfer_ros.errors import Reason, Rejected

PNG = {'format': 'png', 'data': base64.b64encode(b'a picture').decode()}
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def _tagged(values: Any) -> dict[str, Any]:
    data = base64.b64encode(values.tobytes()).decode()
    return {'__ndarray__': data, 'dtype': str(values.dtype), 'shape': list(values.shape)}


def _first(**changes: Any) -> dict[str, Any]:
    facts = {'instruction': 'pick', 'images': {'main': PNG}, 'state': [[1, 2, 3]], 'mode': 'eval'}
    return {'method': 'predict', 'args': [], 'kwargs': facts | changes}


def _batched(**changes: Any) -> dict[str, Any]:
    facts = {
        'main_images': _tagged(np.full((1, 4, 6, 3), 7, np.uint8)),
        'wrist_images': None,
        'extra_view_images': None,
        'states': _tagged(np.array([[1, 2, 3]], np.float32)),
        'task_descriptions': ['pick'],
    }
    return {'method': 'vla.predict', 'args': [facts | changes, {'mode': 'eval'}], 'kwargs': {}}


@pytest.mark.parametrize('facts', [_first(), _batched()])
def test_instruction_state_and_pictures_are_read(facts: dict[str, Any]) -> None:
    call = read_call(facts)
    assert call is not None
    assert call.instruction == 'pick'
    np.testing.assert_array_equal(call.state, [1, 2, 3])
    assert list(call.frames) == ['main']


def test_pictures_keep_their_bytes() -> None:
    first, batched = read_call(_first()), read_call(_batched())
    assert first is not None
    assert batched is not None
    assert (first.frames['main'].compressed, first.frames['main'].data) == (True, b'a picture')
    frame = batched.frames['main']
    assert (frame.compressed, frame.encoding, frame.height, frame.width) == (False, 'rgb8', 4, 6)
    assert frame.data == bytes([7]) * 72


def test_each_form_gets_its_own_answer() -> None:
    first, batched = read_call(_first()), read_call(_batched())
    assert first is not None
    assert batched is not None
    assert answer(first, ROWS) == {
        'actions': [ROWS.tolist()], 'shape': [1, 2, 3], 'dtype': 'float32',
    }  # fmt: skip
    tagged = answer(batched, ROWS)
    values = np.frombuffer(base64.b64decode(tagged['__ndarray__']), np.float32)
    np.testing.assert_array_equal(values.reshape(tagged['shape']), ROWS[None])


def test_arguments_may_come_by_place() -> None:
    facts = {'method': 'predict', 'args': ['pick', {'main': PNG}, [[1, 2, 3]]], 'kwargs': {}}
    call = read_call(facts)
    assert call is not None
    assert call.instruction == 'pick'


def test_asking_whether_somebody_is_there_is_no_prediction() -> None:
    assert read_call({'method': 'healthz', 'args': [], 'kwargs': {}}) is None


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        ([], 'no JSON object'),
        ({'method': 'shutdown'}, "no method 'shutdown'"),
        ({'method': 'predict', 'args': 3}, 'args must be a list'),
        (_first(images={'main': {'format': 'gif', 'data': ''}}), 'allowed: png'),
        (_first(images={'main': {'data': '!'}}), 'must be base64'),
        (_first(images={'top': PNG}), 'known: main, wrist, extra'),
        (_first(images=None), 'an object with main'),
        (_first(state=[[1, 2], [3, 4]]), 'one robot'),
        (_first(state=[[float('nan')]]), 'finite'),
        (_first(state='many'), 'one robot'),
        (_first(state=[[10**400]]), 'one robot'),
        (_batched(states=[[10**400]]), 'list of numbers'),
        (_batched(states={'__ndarray__': '', 'dtype': ['uint8'], 'shape': [0]}), 'array of'),
        (_batched(main_images=_tagged(np.zeros((2, 4, 6, 3), np.uint8))), 'allowed: uint8'),
        (_batched(main_images={'__ndarray__': 'AAAA', 'dtype': 'uint8', 'shape': [2]}), '3 bytes'),
        (
            _batched(main_images={'__ndarray__': 'AAAA', 'dtype': 'object', 'shape': [3]}),
            'array of',
        ),
        (_batched(states={'__ndarray__': 'AAAA', 'dtype': 'uint8', 'shape': [-3]}), '3 bytes'),
    ],
)
def test_a_wrong_call_is_told_what_is_allowed(facts: Any, words: str) -> None:
    """SE-01: nothing that is received can become running code, an object array least of all."""
    with pytest.raises(Rejected, match=words):
        read_call(facts)


def test_the_endpoint_answers_failures_in_its_body_and_without_traceback() -> None:
    async def predict(call: Prediction) -> Rows:
        if not call.instruction:
            raise Rejected(Reason.NOT_READY, 'the engine is starting')
        return ROWS

    async def work() -> None:
        server = RpentServer(predict)
        await server.start('127.0.0.1', 0)
        async with aiohttp.ClientSession(f'http://127.0.0.1:{server.port}') as http:
            async with http.post('/call', json=_first()) as got:
                assert (await got.json())['result']['shape'] == [1, 2, 3]
            async with http.post('/call', json=_first(instruction='')) as got:
                assert await got.json() == {
                    'ok': False, 'error': 'NOT_READY: the engine is starting',
                }  # fmt: skip
            async with http.post('/call', data=b'\xff') as got:
                assert (await got.json())['ok'] is False
            async with http.post('/predict', json=_first()['kwargs']) as got:
                assert (await got.json())['actions'] == [ROWS.tolist()]
            async with http.post('/predict', json={}) as got:
                assert got.status == 503
            async with http.get('/healthz') as got:
                assert got.status == 200
            for headers in ({'Host': 'evil.example'}, {'Sec-Fetch-Site': 'cross-site'}):
                async with http.post('/call', json=_first(), headers=headers) as got:
                    assert (got.status, (await got.json())['ok']) == (403, False)
            async with http.post('/call', data=bytes(MOST_BYTES + 1)) as got:
                assert (got.status, (await got.json())['ok']) == (413, False)
        await server.close()

    asyncio.run(work())
