# SPDX-License-Identifier: Apache-2.0
"""What a request asks for, read from its path and body."""

import json
from typing import Any

import pytest

from xinfer_ros.brain.gateway.call import Call, is_served, read_call
from xinfer_ros.errors import Reason, Rejected


def _read(facts: Any, endpoint: str = 'chat/completions', *, ask_usage: bool = True) -> Call:
    return read_call('POST', endpoint, json.dumps(facts).encode(), ask_usage=ask_usage)


def test_a_stream_is_asked_for_usage_and_nothing_else_of_it_changes() -> None:
    facts = {'model': 'brain', 'stream': True, 'messages': [{'role': 'user', 'content': 'ä'}]}
    call = _read(facts)
    assert call.hides_usage
    assert json.loads(call.body) == {**facts, 'stream_options': {'include_usage': True}}
    assert call.body.endswith(json.dumps(facts).encode()[1:])


@pytest.mark.parametrize(
    ('facts', 'endpoint', 'ask_usage'),
    [
        ({'stream': True}, 'responses', True),
        ({'stream': True, 'stream_options': {'include_usage': False}}, 'completions', True),
        ({'stream': True, 'stream_options': None}, 'completions', True),
        ({'stream': False}, 'chat/completions', True),
        ({'stream': True}, 'chat/completions', False),
    ],
)
def test_other_calls_pass_as_they_are(facts: Any, endpoint: str, ask_usage: bool) -> None:
    call = _read(facts, endpoint, ask_usage=ask_usage)
    assert not call.hides_usage
    assert call.body == json.dumps(facts).encode()


@pytest.mark.parametrize('facts', [{'session_id': 's1'}, {'vllm_xargs': {'session_id': 's1'}}])
def test_a_session_in_the_body_names_the_episode(facts: Any) -> None:
    assert _read(facts).session == 's1'


@pytest.mark.parametrize(
    'body',
    [b'', b'{', b'[]', b'3', b'\xff', b'[' * 100_000, '{}'.encode('utf-16'), b'\xef\xbb\xbf{}'],
)
def test_a_turn_without_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(Rejected, match='no JSON object') as refusal:
        read_call('POST', 'chat/completions', body, ask_usage=True)
    assert refusal.value.reason is Reason.REJECTED_EPISODE


def test_only_known_endpoints_are_served() -> None:
    right = (
        'models',
        'models/org/name',
        'responses/r-1',
        'chat/completions',
        'messages/count_tokens',
    )
    assert all(map(is_served, right))
    wrong = (
        'load_lora_adapter', '../metrics', 'models/../../metrics', 'models/.', 'models/..', 'chat',
        '', 'models/',
    )  # fmt: skip
    assert not any(map(is_served, wrong))


def test_a_call_that_is_no_turn_is_not_looked_into() -> None:
    call = read_call('GET', 'models', b'no json', ask_usage=True)
    assert not call.is_turn
    assert call.body == b'no json'
