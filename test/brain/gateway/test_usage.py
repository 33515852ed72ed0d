# SPDX-License-Identifier: Apache-2.0
"""Usage in every form that servers tell it, and how it is hidden."""

import json
from typing import Any

import pytest

from xinfer_ros.brain.controller import TurnUsage
from xinfer_ros.brain.gateway.usage import UsageFilter, UsageReader, usage_of

CHAT = {
    'prompt_tokens': 100,
    'completion_tokens': 7,
    'prompt_tokens_details': {'cached_tokens': 64},
}
RESPONSES = {
    'input_tokens': 100,
    'output_tokens': 7,
    'input_tokens_details': {'cached_tokens': 64},
}
EXPECTED = TurnUsage(prompt_tokens=100, cached_tokens=64, output_tokens=7)


def _event(facts: Any) -> bytes:
    return b'data: ' + json.dumps(facts, separators=(',', ':')).encode() + b'\n\n'


@pytest.mark.parametrize(
    'facts',
    [
        {'usage': CHAT},
        {'usage': RESPONSES},
        {'type': 'response.completed', 'response': {'usage': RESPONSES}},
        {'usage': {'input_tokens': 30, 'cache_read_input_tokens': 64,
                   'cache_creation_input_tokens': 6, 'output_tokens': 7}},
    ],
)  # fmt: skip
def test_usage_is_read_in_each_form(facts: dict[str, Any]) -> None:
    assert usage_of(facts) == EXPECTED


def test_a_server_that_does_not_tell_cached_tokens_tells_none() -> None:
    usage = usage_of({'usage': {'prompt_tokens': 9, 'prompt_tokens_details': None}})
    assert usage == TurnUsage(prompt_tokens=9, cached_tokens=None, output_tokens=0)


@pytest.mark.parametrize(
    'facts', [None, [], 'x', {}, {'usage': None}, {'usage': {'prompt_tokens': 'many'}},
              {'usage': {'prompt_tokens': True}}, {'usage': {'prompt_tokens': -1}}]
)  # fmt: skip
def test_no_usage_is_no_error(facts: Any) -> None:
    assert usage_of(facts) is None


@pytest.mark.parametrize('size', [1, 3, 1000])
def test_usage_of_a_stream_is_read_however_its_bytes_are_cut(size: int) -> None:
    stream = (
        _event({'choices': [{'delta': {'content': 'a "usage" of words'}}]})
        + _event({'choices': [], 'usage': CHAT})
        + b'data: [DONE]\n\n'
    )
    reader = UsageReader(streams=True)
    for begin in range(0, len(stream), size):
        reader.feed(stream[begin : begin + size])
    assert reader.usage() == EXPECTED


def test_anthropic_events_are_read_together() -> None:
    reader = UsageReader(streams=True)
    start = {'input_tokens': 36, 'cache_read_input_tokens': 64, 'output_tokens': 1}
    reader.feed(b'event: message_start\n' + _event({'message': {'usage': start}}))
    reader.feed(
        b'event: message_delta\n' + _event({'usage': {'input_tokens': 0, 'output_tokens': 7}})
    )
    assert reader.usage() == EXPECTED


@pytest.mark.parametrize(
    'delta', [{'output_tokens': 7}, {'input_tokens': 100, 'output_tokens': 7}]
)
def test_an_event_that_tells_less_keeps_what_was_told_before(delta: dict[str, int]) -> None:
    reader = UsageReader(streams=True)
    start = {'input_tokens': 36, 'cache_read_input_tokens': 64, 'output_tokens': 1}
    reader.feed(_event({'message': {'usage': start}}) + _event({'usage': delta}))
    assert reader.usage() == EXPECTED
    alone = UsageReader(streams=True)
    alone.feed(_event({'usage': {'output_tokens': 7}}))
    assert alone.usage() is None


def test_an_answer_in_one_piece_is_read_at_its_end() -> None:
    reader = UsageReader(streams=False)
    text = json.dumps({'usage': CHAT}).encode()
    reader.feed(text[:20])
    reader.feed(text[20:])
    assert reader.usage() == EXPECTED
    broken = UsageReader(streams=False)
    broken.feed(b'{"usage": ')
    assert broken.usage() is None


@pytest.mark.parametrize('line', [b'\n', b'\r\n'])
@pytest.mark.parametrize('size', [1, 7, 1000])
def test_only_the_event_that_tells_usage_alone_is_hidden(size: int, line: bytes) -> None:
    """Every other byte passes as it is."""
    kept = [
        _event({'choices': [{'delta': {'content': 'a'}}], 'usage': None}),
        b': a comment\n\n',
        _event({'choices': []}),
        b'data: [DONE]\n\n',
    ]
    stream = b''.join([*kept[:3], _event({'choices': [], 'usage': CHAT}), kept[3], b'data: cut'])
    stream = stream.replace(b'\n', line)
    hidden, out = UsageFilter(), b''
    for begin in range(0, len(stream), size):
        out += hidden.pass_on(stream[begin : begin + size])
    expected = b''.join(kept).replace(b'\n', line)
    assert (out, hidden.rest()) == (expected, b'data: cut')
